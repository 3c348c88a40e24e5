/**
 * list_agents and call_agent: agents that call agents of their Box. The called agent's run is a child of the
 * caller's: at most three deep, never an agent that is at work above, at most five of one run. It shares the caller's budgets, and
 * the stated budget of waiting and working runs holds for it as for any other.
 */
import { createHash } from 'node:crypto';
import { boxOfNamespace, callersOf } from '../../api/names.js';
import { isCancelRequested, isTerminal } from '../../run/status.js';
import { ulid } from '../../api/ulid.js';
import { MAX_CALL_DEPTH, MAX_CHILD_RUNS, type AgentRun } from '../../api/v1alpha1/agent-run.js';
import type { Cache, KubeApi } from '../../kube/types.js';
import type { GatewayToolInput } from '../../protocol/gateway-tools.js';
import type { ToolAnswer } from '../../protocol/run.js';
import { timeoutSignal } from '../../runtime/timeout-signal.js';
import type { Clock } from '../../runtime/clock.js';
import {
  backlogMessage,
  exceededBacklog,
  type BacklogReader,
  type BacklogScope,
} from '../../run/start/backlog-budget.js';
import { KeyedWaiter } from '../../kube/keyed-waiter.js';
import type { ReserveRun } from '../../run/start/own-runs.js';
import {
  ACKNOWLEDGE_MS,
  StartRunError,
  findStartedRun,
  startRun,
  type StartRunRequest,
} from '../../run/start/start-run.js';
import type { RunBudgets } from '../budget/run-budgets.js';
import { orMissing } from '../errors.js';
import type { GatewayMetrics } from '../metrics.js';
import type { RunStore } from '../runs/run-store.js';
import { KeyedLock } from '../keyed-lock.js';
import { ToolRefusal, answer, type ToolContext } from './tool-context.js';
import { escapeOutsideTags } from '../../run/outside-text.js';
import { isUntrusted } from '../../run/trust.js';
import { BY_PARENT } from '../../projections/agent-run.js';
import type { GatewayAgent } from '../../projections/agent.js';
import { BY_NAMESPACE } from '../../projections/indexes.js';

/** One call of the runner is held at most this long; then it asks again. */
const HOLD_MS = 10_000;

export interface AgentCallsOptions {
  api: Pick<KubeApi, 'create' | 'get'>;
  store: Pick<RunStore, 'fetch'>;
  clock: Clock;
  runs: Pick<Cache<AgentRun>, 'get' | 'byIndex' | 'onChange'>;
  agents: Pick<Cache<GatewayAgent>, 'byIndex'>;
  budgets: Pick<RunBudgets, 'returnUnused'>;
  /** Live runs, with those that this process has started and its cache does not show yet. */
  backlog: BacklogReader & { reserve: ReserveRun };
  metrics: Pick<GatewayMetrics, 'turnedAway'>;
}

export class AgentCalls {
  readonly #options: AgentCallsOptions;
  readonly #waiter: KeyedWaiter<AgentRun>;
  /** Children made here, by UID of the parent: the cache may lag behind. */
  readonly #made = new Map<string, Set<string>>();
  readonly #starting = new KeyedLock();
  /** The run that a called run waits for, by UID of the waiting one. */
  readonly #turns = new Map<string, string>();

  constructor(options: AgentCallsOptions) {
    this.#options = options;
    this.#waiter = new KeyedWaiter(options.runs, options.clock);
    options.runs.onChange(({ previous, current }) => {
      const ended = current === undefined || isTerminal(current);
      if (!ended) return;
      const { uid = '', name } = (current ?? previous)?.metadata ?? {};
      this.#made.delete(uid);
      this.#turns.delete(uid);
      for (const [waiting, child] of this.#turns) if (child === name) this.#turns.delete(waiting);
    });
  }

  /** The agents that this run may call. */
  list(context: ToolContext): ToolAnswer {
    const agents = this.#others(context).map(({ spec, name }) => ({
      handle: spec.handle ?? name,
      name: spec.name,
      description: spec.description,
    }));
    return answer({ agents: agents.sort((a, b) => (a.handle < b.handle ? -1 : 1)) });
  }

  /** Starts the run of the call, or finds it when the call is repeated, and waits for its end if that is wanted. */
  async call(input: GatewayToolInput<'call_agent'>, context: ToolContext): Promise<ToolAnswer> {
    const { namespace } = context;
    const target = this.#target(input.handle.replace(/^@/, ''), context);
    const name = childNameOf(target.name, context);
    if (input.wait && !this.takeTurn(name, context)) return { ...answer({ status: 'running' }), again: true };
    const uid = context.run.metadata.uid ?? '';
    // One after the other: they count each other.
    const starting = this.#starting.run(uid, () => this.#start({ target, name, input }, context));
    await starting.catch((error: unknown) => {
      this.leaveTurn(name, context);
      throw error;
    });
    if (!input.wait) return answer({ runId: name, status: 'running' });
    const ended = await this.#waiter.wait({ key: `${namespace}/${name}`, until: isTerminal, ms: HOLD_MS });
    // A run that is told to stop takes its calls along: their end must not let it go on before it hears of its own.
    const caller = this.#options.runs.get(`${namespace}/${context.run.metadata.name}`);
    const stops = caller !== undefined && isCancelRequested(caller);
    if (ended === undefined || stops) {
      const isKnown = this.#options.runs.get(`${namespace}/${name}`) !== undefined;
      if (!isKnown && !stops) await this.#expectThere({ namespace, name });
      return { ...answer({ runId: name, status: 'running' }), again: true };
    }
    return resultOf(await this.#options.store.fetch({ namespace, name }));
  }

  /**
   * Whether the call may go on. Runs that are waited for count towards no limit: one that is called itself waits for one at a
   * time, so that a tree of them stays small.
   */
  takeTurn(name: string, { run }: ToolContext): boolean {
    if (!this.isOneAtATime(run)) return true;
    const uid = run.metadata.uid ?? '';
    const holder = this.#turns.get(uid);
    if (holder !== undefined && holder !== name) return false;
    this.#turns.set(uid, name);
    return true;
  }

  /** Gives the turn back, if it is the one of this run. */
  leaveTurn(name: string, { run }: ToolContext): void {
    const uid = run.metadata.uid ?? '';
    if (this.#turns.get(uid) === name) this.#turns.delete(uid);
  }

  /** Whether the run waits for one run at a time, because it was called itself. */
  isOneAtATime(run: AgentRun): boolean {
    return depthOf(run) > 0;
  }

  /** Whether this pod started that run for the run with the UID. */
  hasMade(uid: string, name: string): boolean {
    return this.#made.get(uid)?.has(name) === true;
  }

  /** A run that the cache does not show is not there yet, or was deleted: its end would be waited for in vain. One read. */
  async #expectThere(ref: { namespace: string; name: string }): Promise<void> {
    const run = await orMissing(this.#options.store.fetch(ref));
    if (run === undefined) throw new ToolRefusal(`the run ${ref.name} of the agent that you called was deleted`);
  }

  async #start({ target, name, input }: Call, context: ToolContext): Promise<void> {
    const uid = context.run.metadata.uid ?? '';
    const made = this.#made.get(uid) ?? new Set<string>();
    if (made.has(name)) return;
    this.#expectRoom(name, uid, made);
    await this.#options.budgets.returnUnused(context.served);
    const request = { ...childOf(target, input, context), name };
    const full = exceededBacklog(this.#options.backlog, request.agent);
    if (full === undefined) await this.#create(request);
    else await this.#findInstead(request, full);
    this.#made.set(uid, made.add(name));
  }

  async #create(request: StartRunRequest): Promise<void> {
    const { api, clock, backlog } = this.#options;
    const bound = timeoutSignal(clock, ACKNOWLEDGE_MS);
    const starter = { api, clock, reserve: backlog.reserve, lastOfSession: () => undefined };
    try {
      await startRun(starter, request, bound.signal);
    } catch (error) {
      if (error instanceof StartRunError) throw new ToolRefusal(`the agent was not called: ${error.message}`);
      throw error;
    } finally {
      bound.dispose();
    }
  }

  /** There is no room: a call that is repeated has its run already, another one is refused. One read. */
  async #findInstead(request: StartRunRequest & { name: string }, full: BacklogScope): Promise<void> {
    if ((await findStartedRun(this.#options, request)) !== undefined) return;
    this.#options.metrics.turnedAway(full);
    throw new ToolRefusal(`the agent was not called: ${backlogMessage(full)}; do without it, or try again later`);
  }

  #expectRoom(name: string, uid: string, made: ReadonlySet<string>): void {
    const known = this.#options.runs.byIndex(BY_PARENT, uid).map(({ metadata }) => metadata.name);
    const children = new Set([...known, ...made]);
    if (children.size < MAX_CHILD_RUNS || children.has(name)) return;
    throw new ToolRefusal(`this run has called agents ${MAX_CHILD_RUNS} times, which is the limit: go on without`);
  }

  #target(handle: string, context: ToolContext): GatewayAgent {
    const { run, agent } = context;
    if (depthOf(run) >= MAX_CALL_DEPTH) {
      throw new ToolRefusal(`agents can call agents ${MAX_CALL_DEPTH} deep: do this yourself`);
    }
    const target = this.#others(context).find(({ spec, name }) => (spec.handle ?? name) === handle);
    if (target !== undefined) {
      if (target.active) return target;
      throw new ToolRefusal(`@${handle} is inactive: its runs would only wait`);
    }
    const above = [...(run.spec.parent?.agents ?? []), agent.name];
    if (this.#ofBox(context).some(({ spec, name }) => (spec.handle ?? name) === handle && above.includes(name))) {
      throw new ToolRefusal(`@${handle} waits for this run, or is you: it cannot be called from here`);
    }
    throw new ToolRefusal(`there is no agent @${handle} in this Box: list_agents shows who is there`);
  }

  /** All but the agents that called, and the caller itself. */
  #others(context: ToolContext): GatewayAgent[] {
    const above = [...(context.run.spec.parent?.agents ?? []), context.agent.name];
    return this.#ofBox(context).filter(({ name }) => !above.includes(name));
  }

  #ofBox({ namespace }: ToolContext): GatewayAgent[] {
    const agents = this.#options.agents.byIndex(BY_NAMESPACE, namespace);
    return agents.filter(({ deleting, installing }) => !deleting && !installing);
  }
}

interface Call {
  target: GatewayAgent;
  /** Of its run. */
  name: string;
  input: GatewayToolInput<'call_agent'>;
}

/** The run of a call, without its name. */
function childOf(
  target: GatewayAgent,
  { message, wait }: GatewayToolInput<'call_agent'>,
  { namespace, run, agent }: ToolContext,
): StartRunRequest {
  const { name, uid = '' } = run.metadata;
  return {
    agent: { box: boxOfNamespace(namespace) ?? '', agent: target.name },
    agentUid: target.uid,
    message: `<agent_message from="@${agent.spec.handle ?? agent.name}">\n${escapeOutsideTags(message)}\n</agent_message>`,
    trigger: { origin: 'api' },
    sessionTitle: message,
    actor: `run:${name}`,
    parent: {
      name,
      uid,
      depth: depthOf(run) + 1,
      agents: [...(run.spec.parent?.agents ?? []), agent.name],
      callers: [...callersOf(run), { name, uid }],
      waits: wait,
      ...(isUntrusted(run) ? { untrusted: true } : {}),
    },
  };
}

function depthOf(run: AgentRun): number {
  return run.spec.parent?.depth ?? 0;
}

/** The same call of the same run gives the same name, whichever gateway pod makes it. */
function childNameOf(agent: string, { run, call }: ToolContext): string {
  const digest = createHash('sha256')
    .update(`${run.metadata.uid ?? ''} ${call}`)
    .digest();
  return `${agent}-${ulid(Date.parse(run.status?.claim?.at ?? '') || 0, digest.subarray(0, 10))}`;
}

/** What the caller learns of the end; the output is the one of the status, at most 8 KiB. */
function resultOf({ metadata, status }: AgentRun): ToolAnswer {
  const { phase = 'running', output, outputTruncated, pending, reason, message } = status ?? {};
  return {
    isError: phase !== 'done',
    result: {
      runId: metadata.name,
      status: phase,
      output: output ?? null,
      ...(outputTruncated === true ? { outputTruncated } : {}),
      ...(pending === undefined ? {} : { note: 'The agent asks a person; only a person can answer it.' }),
      ...(phase === 'error' ? { error: `${reason ?? ''}: ${message ?? ''}` } : {}),
    },
  };
}
