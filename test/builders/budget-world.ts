/** The budget ledger on caches that show what has happened only when they are told to, each kind in its own time. */
import type { Grant } from '../../src/run/usage/budget.js';
import { boxNamespace, callersOf } from '../../src/api/names.js';
import { AgentRuns, type AgentRun } from '../../src/api/v1alpha1/agent-run.js';
import type { Budgets } from '../../src/api/v1alpha1/common.js';
import { BudgetLedger } from '../../src/controllers/budget/ledger.js';
import type { BudgetCaches, BudgetOwner } from '../../src/controllers/budget/scopes.js';
import type { CacheChange } from '../../src/kube/types.js';
import { FakeClock } from './fake-clock.js';
import { BY_CALLER } from '../../src/projections/agent-run.js';
import { BY_AGENT, BY_NAMESPACE } from '../../src/projections/indexes.js';

export const NAMESPACE = boxNamespace('lab');

export interface ShownJob {
  ownerUid: string;
  grant?: Grant | undefined;
}

type Change = { key: string; previous?: AgentRun; current?: AgentRun };

export class BudgetWorld {
  readonly clock = new FakeClock();
  readonly runs = new Map<string, AgentRun>();
  readonly jobs = new Map<string, ShownJob>();
  /** Agent `helper`. */
  readonly agent: { spec: BudgetOwner['spec']; status?: BudgetOwner['status'] };
  readonly ledger: BudgetLedger;
  readonly #runListeners: ((change: Change) => void)[] = [];
  readonly #agentListeners: ((change: CacheChange<BudgetOwner>) => void)[] = [];

  constructor(owners: { agent?: Budgets; box?: Budgets; workspace?: Budgets }) {
    this.agent = { spec: { budget: owners.agent } };
    const box = { metadata: { name: 'lab' }, spec: { workspace: 'main', budget: owners.box } };
    const silent = () => () => undefined;
    const caches: BudgetCaches = {
      runs: {
        get: (key) => this.runs.get(key),
        byIndex: (index, value) => [...this.runs.values()].filter((run) => isIn(index, value, run)),
        onChange: (listener) => this.#listen(this.#runListeners, listener),
      },
      jobs: { get: (key) => this.jobs.get(key) },
      agents: {
        get: (key) => (key === `${NAMESPACE}/helper` ? this.agent : undefined),
        onChange: (listener) => this.#listen(this.#agentListeners, listener),
      },
      boxes: { get: () => box, byIndex: () => [box], onChange: silent },
      workspaces: { get: () => ({ spec: { budget: owners.workspace } }), onChange: silent },
    };
    this.ledger = new BudgetLedger(caches, this.clock);
    this.ledger.watch();
  }

  /** The cache of runs shows it as it is now; undefined = gone. */
  show(run: AgentRun | undefined, name: string): void {
    const key = `${NAMESPACE}/${name}`;
    const previous = this.runs.get(key);
    if (run === undefined) this.runs.delete(key);
    else this.runs.set(key, structuredClone(run));
    const change = {
      key,
      ...(previous === undefined ? {} : { previous }),
      ...(run === undefined ? {} : { current: run }),
    };
    for (const listener of this.#runListeners) listener(change);
  }

  /** The cache of agents shows a change. */
  agentChanged(): void {
    this.#tellAgent(this.agent);
  }

  /** The cache of agents shows other sums. */
  showSums(status: NonNullable<BudgetOwner['status']>): void {
    const previous = { ...this.agent };
    this.agent.status = status;
    this.#tellAgent(previous);
  }

  #tellAgent(previous: BudgetOwner): void {
    for (const listener of this.#agentListeners) {
      listener({ key: `${NAMESPACE}/helper`, previous, current: this.agent });
    }
  }

  #listen<T>(listeners: T[], listener: T): () => void {
    listeners.push(listener);
    return () => undefined;
  }
}

function isIn(index: string, value: string, run: AgentRun): boolean {
  if (index === BY_NAMESPACE) return value === NAMESPACE;
  if (index === BY_AGENT) return value === `${NAMESPACE}/${run.spec.agent}`;
  return index === BY_CALLER && callersOf(run).some(({ uid }) => uid === value);
}

/** A run of agent `helper`, or of the agents that those above it called. */
export function newRun(name: string, status?: AgentRun['status'], spec: Partial<AgentRun['spec']> = {}): AgentRun {
  return {
    apiVersion: '',
    kind: AgentRuns.kind,
    metadata: { name, namespace: NAMESPACE, uid: `uid-${name}`, resourceVersion: '1' },
    spec: { agent: 'helper', message: 'x', ...spec },
    ...(status === undefined ? {} : { status }),
  };
}

/** The spec of a run below others, the outermost first. */
export function calledBy(callers: readonly string[], waits: boolean): Partial<AgentRun['spec']> {
  const parent = callers.at(-1) ?? '';
  return {
    agent: `called-${callers.length}`,
    parent: {
      name: parent,
      uid: `uid-${parent}`,
      depth: callers.length,
      agents: ['helper', 'called-1', 'called-2'].slice(0, callers.length),
      callers: callers.map((name) => ({ name, uid: `uid-${name}` })),
      waits,
    },
  };
}

export function usageOf(totalTokens: number) {
  return { steps: 1, inputTokens: totalTokens, outputTokens: 0, totalTokens };
}
