/**
 * await_agents: the end of runs that call_agent started and did not wait for. Only runs that this very run started: of any other
 * nothing is told, not even whether it is there.
 */
import type { AgentRun } from '../../api/v1alpha1/agent-run.js';
import type { Cache } from '../../kube/types.js';
import { KeyedWaiter } from '../../kube/keyed-waiter.js';
import type { GatewayToolInput } from '../../protocol/gateway-tools.js';
import type { ToolAnswer } from '../../protocol/run.js';
import { isCancelRequested, isTerminal } from '../../run/status.js';
import type { Clock } from '../../runtime/clock.js';
import type { RunBudgets } from '../budget/run-budgets.js';
import { orMissing } from '../errors.js';
import type { RunStore } from '../runs/run-store.js';
import type { AgentCalls } from './agent-calls.js';
import { ToolRefusal, answer, type ToolContext } from './tool-context.js';

/** One call of the runner is held at most this long; then it asks again. */
const HOLD_MS = 10_000;

export interface AwaitAgentsOptions {
  clock: Clock;
  runs: Pick<Cache<AgentRun>, 'get' | 'onChange'>;
  store: Pick<RunStore, 'fetch' | 'update'>;
  calls: Pick<AgentCalls, 'hasMade' | 'isOneAtATime' | 'takeTurn' | 'leaveTurn'>;
  budgets: Pick<RunBudgets, 'returnUnused'>;
}

export class AwaitAgents {
  readonly #options: AwaitAgentsOptions;
  readonly #waiter: KeyedWaiter<AgentRun>;
  /** When calls that were asked for again give up, by number, by UID of their run. */
  readonly #deadlines = new Map<string, Map<number, number>>();

  constructor(options: AwaitAgentsOptions) {
    this.#options = options;
    this.#waiter = new KeyedWaiter(options.runs, options.clock);
    options.runs.onChange(({ previous, current }) => {
      if (current === undefined || isTerminal(current))
        this.#deadlines.delete((current ?? previous)?.metadata.uid ?? '');
    });
  }

  /** What became of the runs, when all have ended or the time is over. */
  async call({ runIds, timeoutSeconds }: GatewayToolInput<'await_agents'>, context: ToolContext): Promise<ToolAnswer> {
    const names = [...new Set(runIds)];
    for (const name of names) await this.#expectOwn(name, context);
    await this.#options.budgets.returnUnused(context.served);
    const isOver = await this.#wait(names, { context, leftMs: this.#leftOf(timeoutSeconds, context) });
    if (!isOver && (this.#isStopped(context) || this.#leftOf(timeoutSeconds, context) > 0)) {
      return { ...answer({ status: 'running' }), again: true };
    }
    this.#deadlines.get(uidOf(context))?.delete(context.call);
    const runs = await Promise.all(names.map(async (name) => recordOf(name, await this.#read(name, context))));
    const working = runs.flatMap(({ runId, status }) => (status === 'running' ? [runId] : []));
    return answer({ runs, ...(working.length === 0 ? {} : { stillWorking: working }) });
  }

  /** True when nothing is left to wait for. */
  async #wait(
    names: readonly string[],
    { context, leftMs }: { context: ToolContext; leftMs: number },
  ): Promise<boolean> {
    const { calls, runs } = this.#options;
    const { namespace, run } = context;
    const keyOf = (name: string) => `${namespace}/${name}`;
    const open = names.filter((name) => {
      const known = runs.get(keyOf(name));
      return known === undefined || !isTerminal(known);
    });
    const [first] = open;
    if (first === undefined) return !this.#isStopped(context);
    if (leftMs === 0) return false;
    // As with call_agent: runs that are waited for count towards no limit, so that they may not wait for the places of those who wait.
    const waited = calls.isOneAtATime(run) ? [first] : open;
    if (waited.length < open.length && !calls.takeTurn(first, context)) {
      await this.#waiter.wait({ key: keyOf(run.metadata.name), until: isTerminal, ms: Math.min(HOLD_MS, leftMs) });
      return false;
    }
    try {
      for (const name of waited) await this.#mark(name, context);
      const ms = Math.min(HOLD_MS, leftMs);
      const ended = await Promise.all(
        waited.map((name) => this.#waiter.wait({ key: keyOf(name), until: isTerminal, ms })),
      );
      if (this.#isStopped(context)) return false;
      const gone = await Promise.all(
        waited.map(async (name, index) => ended[index] === undefined && !(await this.#isThere(name, context))),
      );
      return waited.length === open.length && waited.every((_name, index) => ended[index] !== undefined || gone[index]);
    } finally {
      if (waited.length < open.length) calls.leaveTurn(first, context);
    }
  }

  /** Its parent waits: it needs no free place from now on. */
  async #mark(name: string, { namespace }: ToolContext): Promise<void> {
    const waits = this.#options.store.update({ namespace, name }, (run) =>
      run.spec.parent?.waits === true || run.status?.awaited === true ? undefined : { type: 'awaited' },
    );
    await orMissing(waits);
  }

  /** One that the cache does not show is not there yet, or was deleted. One read. */
  async #isThere(name: string, context: ToolContext): Promise<boolean> {
    if (this.#options.runs.get(`${context.namespace}/${name}`) !== undefined) return true;
    return (await this.#read(name, context)) !== undefined;
  }

  async #read(name: string, { namespace }: ToolContext): Promise<AgentRun | undefined> {
    return orMissing(this.#options.store.fetch({ namespace, name }));
  }

  /** The cache may lag behind what another gateway pod started. */
  async #expectOwn(name: string, context: ToolContext): Promise<void> {
    const uid = uidOf(context);
    if (this.#options.calls.hasMade(uid, name)) return;
    const known = this.#options.runs.get(`${context.namespace}/${name}`) ?? (await this.#read(name, context));
    if (known !== undefined && known.spec.parent?.uid === uid) return;
    throw new ToolRefusal(`this run has started no run ${name}: pass the ids that call_agent returned in this run`);
  }

  /** A run that is told to stop takes its calls along: their end must not let it go on before it hears of its own. */
  #isStopped({ namespace, run }: ToolContext): boolean {
    const caller = this.#options.runs.get(`${namespace}/${run.metadata.name}`);
    return caller !== undefined && isCancelRequested(caller);
  }

  /** Milliseconds that the call may still wait, counted from when it was first made. */
  #leftOf(timeoutSeconds: number | undefined, context: ToolContext): number {
    if (timeoutSeconds === undefined) return Infinity;
    const now = this.#options.clock.monotonic();
    const uid = uidOf(context);
    const ofRun = this.#deadlines.get(uid) ?? new Map<number, number>();
    this.#deadlines.set(uid, ofRun);
    const deadline = ofRun.get(context.call) ?? now + timeoutSeconds * 1000;
    ofRun.set(context.call, deadline);
    return Math.max(0, deadline - now);
  }
}

function uidOf({ run }: ToolContext): string {
  return run.metadata.uid ?? '';
}

/** What the caller learns of one run; the output is the one of the status, at most 8 KiB. */
function recordOf(runId: string, run: AgentRun | undefined) {
  if (run === undefined) return { runId, status: 'deleted', output: null, reason: null, costUsd: null };
  const { phase = 'running', output, outputTruncated, pending, reason, message, usage } = run.status ?? {};
  return {
    runId,
    status: phase,
    output: output ?? null,
    ...(outputTruncated === true ? { outputTruncated } : {}),
    reason: reason ?? null,
    ...(message === undefined || message === '' ? {} : { message }),
    ...(pending === undefined ? {} : { note: 'The agent asks a person; only a person can answer it.' }),
    costUsd: usage?.costUsd ?? null,
  };
}
