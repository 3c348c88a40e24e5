/**
 * Who may spend what. What a budget has left = its limit - what ended runs used - what live runs were
 * granted. Only the leader grants, and it remembers each grant until the caches show it, so that the same money is never
 * granted twice because a cache lags. After a restart everything is read again from runs and Jobs.
 *
 * What called agents use counts against the grant of each run above them: together their grants stay within what the budgets
 * leave to the caller. A gateway may return what its run did not use, so that called agents can have it;
 * each return is numbered, and grants of an earlier number are void.
 * See docs/architecture.md#budgets.
 */
import { amountOf, countedAt, periodsOf } from '../../run/usage/budget.js';
import { isReleased } from '../../run/usage/totals.js';
import { sumOf } from '../../run/usage/saturating.js';
import type { Allowance, Amount, AdmittedGrant, Grant } from '../../run/usage/budget.js';
import { isTerminal, isSettled } from '../../run/status.js';
import { amountInUse } from '../../run/usage/open-call.js';
import type { AgentRun, RunBudget } from '../../api/v1alpha1/agent-run.js';
import type { CacheChange } from '../../kube/types.js';
import { isoNow, type Clock } from '../../runtime/clock.js';
import { ExhaustedBudgets } from './exhausted-budgets.js';
import { callerRuns, familyOf, ownerScopes, placeOf, returnsOf } from './scopes.js';
import type { BudgetCaches, BudgetOwner, OwnerKind, OwnerScope, Place, RunSet } from './scopes.js';
import { allowanceIn, enlarged, firstGrant, higher, narrow, shown } from './grants.js';
import type { Limit } from './grants.js';

/** A removed run goes on counting for this long: the caches of its owners may show its sums later than the cache of runs its end. */
const GONE_MS = 120_000;

interface Held {
  at: string;
  amount: Amount;
}

interface Gone extends Held, Place {
  uid: string;
  until: number;
  /** Ids of the owners that have counted it for good: it has left their `folding`. */
  summedBy: Set<string>;
}

interface Granted extends Grant {
  /** How many returns the grant takes into account. */
  returned: number;
}

const NOTHING: Amount = { tokens: 0, microUsd: 0 };

export class BudgetLedger {
  /** Budgets that were found exhausted, and when to look again. */
  readonly exhausted: ExhaustedBudgets;
  readonly #caches: BudgetCaches;
  readonly #clock: Clock;
  readonly #granted = new Map<string, Granted>();
  readonly #gone: Gone[] = [];

  constructor(caches: BudgetCaches, clock: Clock) {
    this.#caches = caches;
    this.#clock = clock;
    this.exhausted = new ExhaustedBudgets(caches, clock, (scope, per, without) =>
      this.#usedIn(scope, { per, without }),
    );
  }

  /** Removed runs that are remembered. */
  get remembered(): number {
    return this.#gone.length;
  }

  /** Call it before the informers start; returns unsubscribe. */
  watch(): () => void {
    const { runs, agents, boxes, workspaces } = this.#caches;
    const sums = (kind: OwnerKind) => (change: CacheChange<BudgetOwner>) => this.#noteSummed(kind, change);
    const stops = [
      runs.onChange(({ previous, current }) => {
        const wasHere = previous !== undefined && !isReleased(previous);
        if (wasHere && (current === undefined || isReleased(current))) this.#keep(previous);
        else if (current !== undefined && isSettled(current)) this.#granted.delete(uidOf(current));
      }),
      agents.onChange(sums('Agent')),
      boxes.onChange(sums('Box')),
      workspaces.onChange(sums('Workspace')),
      this.exhausted.watch(),
    ];
    return () => stops.forEach((stop) => stop());
  }

  /** The first grant of a run; undefined when no budget limits it. A grant of nothing lets the run ask for more. */
  admit(run: AgentRun): AdmittedGrant | undefined {
    const at = isoNow(this.#clock);
    const left = this.#left(run, at);
    if (left.tokens === undefined && left.microUsd === undefined) return undefined;
    const grant = { at, ...firstGrant(left, run.spec.parent?.waits === false) };
    this.#granted.set(uidOf(run), { ...grant, returned: returnsOf(run) });
    return { ...grant, left };
  }

  /** The run waits again and has no Job: what it was granted is free. */
  release(run: AgentRun): void {
    if (run.status?.budget === undefined) this.#granted.delete(uidOf(run));
  }

  /** The answer to what the gateway wants; undefined when it wants nothing new. */
  enlarge(run: AgentRun): RunBudget | undefined {
    const budget = run.status?.budget;
    if (!wantsMore(run) || budget === undefined) return undefined;
    const known = this.#grantOf(run) ?? allowanceIn(budget.granted);
    const more = enlarged(known, allowanceIn(budget.wanted ?? {}), this.#left(run, budget.at));
    this.#granted.set(uidOf(run), { at: budget.at, ...more, returned: returnsOf(run) });
    return { ...budget, granted: shown(more), answered: budget.wanted };
  }

  /** What all budgets together leave to this run over its whole life, apart from the runs above and below it. */
  #left(run: AgentRun, at: string): Allowance {
    const left: Allowance = {};
    for (const one of [run, ...callerRuns(this.#caches, run)]) {
      const family = this.#usedByFamily(one, run);
      const when = one === run ? at : (this.#held(one)?.at ?? at);
      for (const scope of ownerScopes(this.#caches, placeOf(one))) {
        // The days and months of their common Box and Workspace count them all anyway.
        const countsAll = scope.kind !== 'Agent';
        for (const limit of scope.budget) {
          if (limit.per === 'run') narrow(left, limit, [family]);
          else if (!countsAll)
            narrow(left, limit, [this.#usedIn(scope, { per: limit.per, at: when, without: one }), family]);
          else if (one === run) narrow(left, limit, [this.#usedIn(scope, { per: limit.per, at, without: run })]);
        }
      }
    }
    return left;
  }

  /** What a run and those below it hold, except for one of them. */
  #usedByFamily(caller: AgentRun, without: AgentRun): Amount {
    const below = this.#used(familyOf(this.#caches, caller), undefined, uidOf(without));
    if (caller === without) return below;
    const own = this.#held(caller)?.amount ?? NOTHING;
    return { tokens: sumOf(below.tokens, own.tokens), microUsd: sumOf(below.microUsd, own.microUsd) };
  }

  /** What the runs of an owner used or may use in the day or month of a time, by default now. */
  #usedIn(
    scope: OwnerScope,
    { per, at, without }: { per: Limit['per']; at?: string; without?: AgentRun | undefined },
  ): Amount {
    const { day, month } = periodsOf(at ?? isoNow(this.#clock));
    return this.#used(scope, per === 'day' ? day : month, without === undefined ? '' : uidOf(without));
  }

  /** What some runs used or may use, in a period or altogether, except for one of them. */
  #used({ id, sums, runs, has }: RunSet, period: string | undefined, without: string): Amount {
    const { folded, folding = [] } = sums ?? {};
    const sum = { tokens: 0, microUsd: 0 };
    const add = ({ tokens, microUsd }: Amount) => {
      sum.tokens = sumOf(sum.tokens, tokens);
      sum.microUsd = sumOf(sum.microUsd, microUsd);
    };
    if (folded !== undefined && period === undefined) {
      add({ tokens: sumOf(folded.inputTokens, folded.outputTokens), microUsd: folded.costMicroUsd });
    }
    const base = folded?.periods?.find((one) => one.period === period);
    if (base !== undefined) add({ tokens: base.tokens, microUsd: base.costMicroUsd });
    const counted = new Set([...folding, without]);
    for (const run of runs()) {
      if (counted.has(uidOf(run)) || isReleased(run)) continue;
      const held = this.#held(run);
      if (held !== undefined && isIn(held.at, period)) add(held.amount);
    }
    this.#forgetGone();
    for (const gone of this.#gone) {
      if (counted.has(gone.uid) || (id !== undefined && gone.summedBy.has(id))) continue;
      if (has(gone) && isIn(gone.at, period)) add(gone.amount);
    }
    return sum;
  }

  /** What an ended run used, or a live one may use. */
  #held(run: AgentRun): Held | undefined {
    const grant = this.#grantOf(run);
    const at = grant?.at ?? countedAt(run);
    if (at === undefined) return undefined;
    if (isSettled(run)) return { at, amount: amountOf(run.status?.usage) };
    const { tokens, microUsd } = amountInUse(run.status ?? {});
    return {
      at,
      amount: { tokens: Math.max(grant?.tokens ?? 0, tokens), microUsd: Math.max(grant?.microUsd ?? 0, microUsd) },
    };
  }

  /** The largest known grant of a run since it last returned something. */
  #grantOf(run: AgentRun): Grant | undefined {
    const uid = uidOf(run);
    const job = this.#caches.jobs.get(`${run.metadata.namespace ?? ''}/${run.metadata.name}`);
    const { budget } = run.status ?? {};
    const returned = returnsOf(run);
    const granted = this.#granted.get(uid);
    const grants = [
      granted !== undefined && granted.returned >= returned ? granted : undefined,
      job?.ownerUid === uid && returned === 0 ? job.grant : undefined,
      budget === undefined ? undefined : { at: budget.at, ...allowanceIn(budget.granted) },
    ].filter((grant) => grant !== undefined);
    return grants.reduce<Grant | undefined>(
      (most, grant) => ({
        at: most?.at ?? grant.at,
        tokens: higher(most?.tokens, grant.tokens),
        microUsd: higher(most?.microUsd, grant.microUsd),
      }),
      undefined,
    );
  }

  /** Oldest first: all are remembered for the same time. */
  #forgetGone(): void {
    const now = this.#clock.monotonic();
    const expired = this.#gone.findIndex(({ until }) => until > now);
    if (expired !== 0) this.#gone.splice(0, expired === -1 ? this.#gone.length : expired);
  }

  /** Even where there is no budget: one may be set within that time. */
  #keep(run: AgentRun): void {
    const uid = uidOf(run);
    const held = this.#held(run);
    this.#granted.delete(uid);
    if (held === undefined) return;
    this.#forgetGone();
    this.#gone.push({ ...held, ...placeOf(run), uid, until: this.#clock.monotonic() + GONE_MS, summedBy: new Set() });
  }

  /** A run leaves `folding` only after it is gone or released; from then on only the sums contain it. */
  #noteSummed(kind: OwnerKind, { key, previous, current }: CacheChange<BudgetOwner>): void {
    const before = previous?.status?.folding ?? [];
    const after = new Set(current?.status?.folding);
    const left = new Set(before.filter((uid) => !after.has(uid)));
    if (left.size === 0) return;
    for (const gone of this.#gone) if (left.has(gone.uid)) gone.summedBy.add(`${kind}:${key}`);
  }
}

/** Whether the gateway wants something that has not been answered. */
export function wantsMore(run: Pick<AgentRun, 'status'>): boolean {
  const { wanted, answered } = run.status?.budget ?? {};
  if (wanted === undefined || isTerminal(run)) return false;
  return wanted.tokens !== answered?.tokens || wanted.usd !== answered?.usd;
}

function uidOf({ metadata: { uid = '' } }: Pick<AgentRun, 'metadata'>): string {
  return uid;
}

function isIn(at: string, period: string | undefined): boolean {
  const { day, month } = periodsOf(at);
  return period === undefined || period === day || period === month;
}
