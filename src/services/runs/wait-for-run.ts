/** Waiting for the end of a run (spec 4.2.7). */
import type { KeyedWaiter } from '../../kube/keyed-waiter.js';
import type { ApiRun } from '../../projections/agent-run.js';

export type RunWaiter = Pick<KeyedWaiter<ApiRun>, 'wait'>;

export interface RunWait {
  namespace: string;
  name: string;
  ms: number;
  /** The client is gone: stop waiting, the run goes on. */
  signal: AbortSignal;
}

/**
 * The run once it has ended; undefined when it still works at the end of the wait, when the client is gone or when this
 * process is told to stop.
 */
export function waitForRun(waiter: RunWaiter, { namespace, name, ms, signal }: RunWait): Promise<ApiRun | undefined> {
  return waiter.wait({ key: `${namespace}/${name}`, until: (run) => run.terminal, ms, signal });
}
