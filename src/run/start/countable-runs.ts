/** The runs of the cache of a controller or gateway as the backlog budget counts them. */
import { boxOfNamespace } from '../../api/names.js';
import { isTerminal } from '../status.js';
import type { AgentRun } from '../../api/v1alpha1/agent-run.js';
import type { Cache } from '../../kube/types.js';
import type { CountedRun, RunSource } from './backlog.js';

/** What a projection of AgentRuns keeps for the budget. */
export type CountableRun = Pick<AgentRun, 'metadata' | 'spec' | 'status'> & {
  /** Stored size of message and input of a run that has not ended. */
  liveInputBytes?: number;
};

export function countableRuns(runs: Pick<Cache<CountableRun>, 'values' | 'onChange'>): RunSource {
  return {
    values: () => [...runs.values()].map(counted),
    onChange: (listener) =>
      runs.onChange(({ key, current }) =>
        listener({ key, ...(current === undefined ? {} : { current: counted(current) }) }),
      ),
  };
}

function counted(run: CountableRun): CountedRun {
  const { namespace = '', name, deletionTimestamp } = run.metadata;
  return {
    namespace,
    name,
    box: boxOfNamespace(namespace) ?? '',
    agent: run.spec.agent,
    terminal: isTerminal(run),
    leaving: deletionTimestamp !== undefined,
    inputBytes: run.liveInputBytes ?? 0,
  };
}
