/**
 * Who may spend what (DESIGN 4, Money). What a budget has left = its limit - what ended runs used - what live runs were
 * granted. Only the leader grants, and it remembers each grant until the caches show it, so that a lagging cache never gives
 * the same money away twice. After a restart everything is read again from runs and Jobs.
 */
import { amountOf, countedAt, periodsOf } from '../../api/budget.js';
import type { Allowance, Amount, Slice } from '../../api/budget.js';
import { formatMicroUsd, parseMicroUsd } from '../../api/money.js';
import { boxNamespace, boxOfNamespace } from '../../api/names.js';
import { isTerminal } from '../../api/run-status.js';
import type { AgentRun, RunBudget } from '../../api/v1alpha1/agent-run.js';
import type { Budgets, FoldedTotals } from '../../api/v1alpha1/common.js';
import type { Cache } from '../../kube/types.js';
import { isoNow, type Clock } from '../../runtime/clock.js';
import { BY_AGENT, BY_NAMESPACE, BY_WORKSPACE, agentIndexValue } from '../common/informers.js';

/** The first slice is an eighth of what is left, but not less than this: few calls should have to ask for more. */
const FIRST_SHARE = 8;
const FIRST_TOKENS = 50_000;
const FIRST_MICRO_USD = 100_000;
/** A removed run counts on for this long: the caches of its owners may show its sums later than the runs' its end. */
const GONE_MS = 120_000;

/** What of an Agent, Box or Workspace matters here. */
export interface BudgetOwner {
  spec: { budget?: Budgets | undefined };
  status?: { folded?: FoldedTotals | undefined; folding?: string[] | undefined } | undefined;
}

export interface BudgetCaches {
  runs: Pick<Cache<AgentRun>, 'get' | 'byIndex' | 'onChange'>;
  jobs: Pick<Cache<{ ownerUid: string | undefined; slice?: Slice | undefined }>, 'get'>;
  agents: Pick<Cache<BudgetOwner>, 'get'>;
  boxes: Pick<Cache<BudgetOwner & { metadata: { name: string }; spec: { workspace: string } }>, 'get' | 'byIndex'>;
  workspaces: Pick<Cache<BudgetOwner>, 'get'>;
}

interface Held {
  at: string;
  amount: Amount;
}

interface Gone extends Held {
  uid: string;
  namespace: string;
  agent: string;
  until: number;
}

interface Scope {
  owner: BudgetOwner;
  runs: () => readonly AgentRun[];
  had: (gone: Gone) => boolean;
}

export class BudgetLedger {
  readonly #caches: BudgetCaches;
  readonly #clock: Clock;
  readonly #granted = new Map<string, Slice>();
  readonly #gone: Gone[] = [];

  constructor(caches: BudgetCaches, clock: Clock) {
    this.#caches = caches;
    this.#clock = clock;
  }

  /** Removed runs that are remembered. */
  get remembered(): number {
    return this.#gone.length;
  }

  /** To be subscribed before the informers start; returns unsubscribe. */
  watch(): () => void {
    return this.#caches.runs.onChange(({ previous, current }) => {
      if (current === undefined && previous !== undefined) this.#keep(previous);
      else if (current !== undefined && isSettled(current)) this.#granted.delete(current.metadata.uid ?? '');
    });
  }

  /** The first slice of a run; undefined when no budget limits it. A slice of nothing lets the run ask for more. */
  admit(run: AgentRun): Slice | undefined {
    const at = isoNow(this.#clock);
    const left = this.#left(run, at);
    if (left.tokens === undefined && left.microUsd === undefined) return undefined;
    const slice: Slice = {
      at,
      tokens: firstSlice(left.tokens, FIRST_TOKENS),
      microUsd: firstSlice(left.microUsd, FIRST_MICRO_USD),
    };
    this.#granted.set(run.metadata.uid ?? '', slice);
    return slice;
  }

  /** The answer to what the gateway wants; undefined when it wants nothing new. */
  enlarge(run: AgentRun): RunBudget | undefined {
    const budget = run.status?.budget;
    if (!wantsMore(run) || budget === undefined) return undefined;
    const known = this.#sliceOf(run) ?? { at: budget.at, ...allowanceIn(budget.granted) };
    const wanted = allowanceIn(budget.wanted ?? {});
    const left = this.#left(run, budget.at);
    const slice: Slice = {
      at: budget.at,
      tokens: enlarged(known.tokens, wanted.tokens, left.tokens),
      microUsd: enlarged(known.microUsd, wanted.microUsd, left.microUsd),
    };
    this.#granted.set(run.metadata.uid ?? '', slice);
    return { ...budget, granted: shown(slice), answered: budget.wanted };
  }

  /** What all budgets together leave to this run from its beginning. */
  #left(run: AgentRun, at: string): Allowance {
    const left: Allowance = {};
    const { day, month } = periodsOf(at);
    for (const scope of this.#scopesOf(run)) {
      for (const { per, usd, tokens } of scope.owner.spec.budget ?? []) {
        const period = per === 'day' ? day : month;
        const used = per === 'run' ? { tokens: 0, microUsd: 0 } : this.#used(scope, period, run.metadata.uid ?? '');
        if (tokens !== undefined) left.tokens = lower(left.tokens, tokens - used.tokens);
        const microUsd = parseMicroUsd(usd);
        if (microUsd !== undefined) left.microUsd = lower(left.microUsd, microUsd - used.microUsd);
      }
    }
    return left;
  }

  /** What the runs of an owner used or may use in a period, without one of them. */
  #used({ owner, runs, had }: Scope, period: string, without: string): Amount {
    const { folded, folding = [] } = owner.status ?? {};
    const sum = { tokens: 0, microUsd: 0 };
    const add = ({ tokens, microUsd }: Amount) => {
      sum.tokens += tokens;
      sum.microUsd += microUsd;
    };
    const base = folded?.periods?.find((one) => one.period === period);
    if (base !== undefined) add({ tokens: base.tokens, microUsd: base.costMicroUsd });
    const counted = new Set([...folding, without]);
    for (const run of runs()) {
      if (counted.has(run.metadata.uid ?? '')) continue;
      const held = this.#held(run);
      if (held !== undefined && isIn(held.at, period)) add(held.amount);
    }
    this.#forgetGone();
    for (const gone of this.#gone) {
      if (!counted.has(gone.uid) && had(gone) && isIn(gone.at, period)) add(gone.amount);
    }
    return sum;
  }

  /** What an ended run used; what a live one may use. */
  #held(run: AgentRun): Held | undefined {
    const slice = this.#sliceOf(run);
    const at = slice?.at ?? countedAt(run);
    if (at === undefined) return undefined;
    const { usage, openCall } = run.status ?? {};
    const amount = amountOf(usage);
    if (isSettled(run)) return { at, amount };
    const open = amountOf(
      openCall && { totalTokens: openCall.inputTokens + openCall.outputTokens, costUsd: openCall.costUsd },
    );
    return {
      at,
      amount: {
        tokens: Math.max(slice?.tokens ?? 0, amount.tokens + open.tokens),
        microUsd: Math.max(slice?.microUsd ?? 0, amount.microUsd + open.microUsd),
      },
    };
  }

  /** The most that is known to be granted to a run. */
  #sliceOf(run: AgentRun): Slice | undefined {
    const uid = run.metadata.uid ?? '';
    const job = this.#caches.jobs.get(`${run.metadata.namespace ?? ''}/${run.metadata.name}`);
    const { budget } = run.status ?? {};
    const slices = [
      this.#granted.get(uid),
      job?.ownerUid === uid ? job.slice : undefined,
      budget === undefined ? undefined : { at: budget.at, ...allowanceIn(budget.granted) },
    ].filter((slice) => slice !== undefined);
    return slices.reduce<Slice | undefined>(
      (most, slice) => ({
        at: most?.at ?? slice.at,
        tokens: higher(most?.tokens, slice.tokens),
        microUsd: higher(most?.microUsd, slice.microUsd),
      }),
      undefined,
    );
  }

  #scopesOf(run: AgentRun): Scope[] {
    const { namespace = '' } = run.metadata;
    const { runs, agents, boxes, workspaces } = this.#caches;
    const agentKey = agentIndexValue(namespace, run.spec.agent);
    const agent = agents.get(agentKey);
    const box = boxes.get(boxOfNamespace(namespace) ?? '');
    const workspace = box === undefined ? undefined : workspaces.get(box.spec.workspace);
    const namespaces = () => new Set(boxes.byIndex(BY_WORKSPACE, box?.spec.workspace ?? '').map(namespaceOf));
    const scopes: (Omit<Scope, 'owner'> & { owner: BudgetOwner | undefined })[] = [
      {
        owner: agent,
        runs: () => runs.byIndex(BY_AGENT, agentKey),
        had: (gone) => gone.namespace === namespace && gone.agent === run.spec.agent,
      },
      { owner: box, runs: () => runs.byIndex(BY_NAMESPACE, namespace), had: (gone) => gone.namespace === namespace },
      {
        owner: workspace,
        runs: () => [...namespaces()].flatMap((one) => runs.byIndex(BY_NAMESPACE, one)),
        had: (gone) => namespaces().has(gone.namespace),
      },
    ];
    return scopes.filter((scope): scope is Scope => scope.owner !== undefined);
  }

  /** Oldest first: all are kept for the same time. */
  #forgetGone(): void {
    const now = this.#clock.monotonic();
    const expired = this.#gone.findIndex(({ until }) => until > now);
    if (expired !== 0) this.#gone.splice(0, expired === -1 ? this.#gone.length : expired);
  }

  /** Also where nobody has a budget: one may be set within the time. */
  #keep(run: AgentRun): void {
    const uid = run.metadata.uid ?? '';
    const held = this.#held(run);
    this.#granted.delete(uid);
    if (held === undefined) return;
    this.#forgetGone();
    const { namespace = '' } = run.metadata;
    this.#gone.push({ ...held, uid, namespace, agent: run.spec.agent, until: this.#clock.monotonic() + GONE_MS });
  }
}

/** Whether the gateway asks for something that was not answered. */
export function wantsMore(run: Pick<AgentRun, 'status'>): boolean {
  const { wanted, answered } = run.status?.budget ?? {};
  if (wanted === undefined || isTerminal(run)) return false;
  return wanted.tokens !== answered?.tokens || wanted.usd !== answered?.usd;
}

function isSettled(run: AgentRun): boolean {
  return isTerminal(run) && run.status?.usageFinal === true;
}

function isIn(at: string, period: string): boolean {
  const { day, month } = periodsOf(at);
  return period === day || period === month;
}

function namespaceOf(box: { metadata: { name: string } }): string {
  return boxNamespace(box.metadata.name);
}

function lower(one: number | undefined, other: number): number {
  return Math.max(0, Math.min(one ?? Infinity, other));
}

function higher(one: number | undefined, other: number | undefined): number | undefined {
  return one === undefined || other === undefined ? (one ?? other) : Math.max(one, other);
}

function firstSlice(left: number | undefined, least: number): number | undefined {
  return left === undefined ? undefined : Math.min(left, Math.max(Math.ceil(left / FIRST_SHARE), least));
}

/** As much of the wish as is left; never less than before. */
function enlarged(known: number | undefined, wanted: number | undefined, left: number | undefined): number | undefined {
  if (known === undefined || wanted === undefined) return known;
  return Math.max(known, Math.min(wanted, left ?? wanted));
}

function allowanceIn({ tokens, usd }: { tokens?: number | undefined; usd?: string | undefined }): Allowance {
  const microUsd = parseMicroUsd(usd);
  return { ...(tokens === undefined ? {} : { tokens }), ...(microUsd === undefined ? {} : { microUsd }) };
}

function shown({ tokens, microUsd }: Allowance): RunBudget['granted'] {
  return {
    ...(tokens === undefined ? {} : { tokens }),
    ...(microUsd === undefined ? {} : { usd: formatMicroUsd(microUsd) }),
  };
}
