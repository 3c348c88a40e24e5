/**
 * Budgets of a day or month that have nothing left: further runs of their owner wait. A budget is looked at again when one of
 * its runs ends or returns part of its grant, when its owner changes, and when the day or month ends.
 */
import type { Amount } from '../../run/usage/budget.js';
import { boxNamespace, boxOfNamespace } from '../../api/names.js';
import type { AgentRun } from '../../api/v1alpha1/agent-run.js';
import type { CacheChange } from '../../kube/types.js';
import type { Clock } from '../../runtime/clock.js';
import { isSettled } from '../../run/status.js';
import { ownerScopes, placeOf, returnsOf } from './scopes.js';
import type { BudgetCaches, OwnerScope, Place } from './scopes.js';
import { isExhausted, type Limit } from './grants.js';
import { agentKey } from '../../projections/indexes.js';

type Period = Exclude<Limit['per'], 'run'>;

/** A budget that has nothing left. */
export interface ExhaustedBudget {
  kind: OwnerScope['kind'];
  name: string;
  per: Period;
  limit: Limit;
  /** When its day or month ends, in milliseconds since the epoch. */
  freeAt: number;
}

/** An exhausted budget that holds back the runs of its owner, which is above `where`. */
export interface Mark extends ExhaustedBudget {
  id: string;
  where: Pick<Place, 'namespace' | 'agent'>;
  isDirty: boolean;
}

type UsedIn = (scope: OwnerScope, per: Period, without?: AgentRun) => Amount;

export class ExhaustedBudgets {
  /** By owner: of its exhausted budgets the one that is free again last. */
  readonly #marks = new Map<string, Mark>();
  readonly #freeListeners = new Set<() => void>();
  readonly #exhaustedListeners = new Set<(mark: Mark) => void>();

  constructor(
    private readonly caches: BudgetCaches,
    private readonly clock: Clock,
    private readonly usedIn: UsedIn,
  ) {}

  /** Returns unsubscribe. */
  watch(): () => void {
    const { runs, agents, boxes, workspaces } = this.caches;
    const ownerChanged = (kind: OwnerScope['kind']) => (change: { key: string }) => {
      this.#touch((mark) => mark.id === `${kind}:${change.key}`);
    };
    const stops = [
      runs.onChange((change) => {
        if (!freesSomething(change)) return;
        const run = change.current ?? change.previous;
        if (run !== undefined) this.#touch((mark) => this.#covers(mark, placeOf(run)));
      }),
      agents.onChange(ownerChanged('Agent')),
      boxes.onChange(ownerChanged('Box')),
      workspaces.onChange(ownerChanged('Workspace')),
    ];
    return () => stops.forEach((stop) => stop());
  }

  /** Calls back when something may be free again: time for {@link review}. Returns unsubscribe. */
  onFreed(listener: () => void): () => void {
    this.#freeListeners.add(listener);
    return () => this.#freeListeners.delete(listener);
  }

  /** Calls back when a budget was found exhausted that was not known to be. Returns unsubscribe. */
  onExhausted(listener: (mark: Mark) => void): () => void {
    this.#exhaustedListeners.add(listener);
    return () => this.#exhaustedListeners.delete(listener);
  }

  /** Counts, and returns the exhausted budget that holds a run back; it is remembered for other runs of its owner. */
  expectRoom(run: AgentRun): ExhaustedBudget | undefined {
    const { namespace, agent } = placeOf(run);
    for (const scope of ownerScopes(this.caches, { namespace, agent })) {
      const found = this.#exhaustedIn(scope, run);
      if (found === undefined) this.#marks.delete(scope.id);
      else this.#mark({ ...found, id: scope.id, where: { namespace, agent }, isDirty: false });
    }
    return this.of(boxOfNamespace(namespace) ?? '', agent);
  }

  /** The exhausted budget that holds back the runs of an agent, as last counted. */
  of(box: string, agent: string): ExhaustedBudget | undefined {
    if (this.#marks.size === 0) return undefined;
    const workspace = this.caches.boxes.get(box)?.spec.workspace ?? '';
    const ids = [`Agent:${agentKey(boxNamespace(box), agent)}`, `Box:${box}`, `Workspace:${workspace}`];
    return latest(ids.flatMap((id) => this.#marks.get(id) ?? []));
  }

  /** Counts again what has changed. Only the leader may call it. */
  review(): void {
    const now = this.clock.now();
    for (const mark of this.#marks.values()) {
      if (!mark.isDirty && mark.freeAt > now) continue;
      const scope = ownerScopes(this.caches, mark.where).find(({ id }) => id === mark.id);
      const found = scope === undefined ? undefined : this.#exhaustedIn(scope);
      if (found === undefined) this.#marks.delete(mark.id);
      else this.#marks.set(mark.id, { ...mark, ...found, isDirty: false });
    }
  }

  /** Milliseconds until the first of these days or months ends; Infinity when no budget is exhausted. */
  nextFreeMs(): number {
    const next = Math.min(...[...this.#marks.values()].map(({ freeAt }) => freeAt));
    return Math.max(1, next - this.clock.now());
  }

  #mark(mark: Mark): void {
    const isNew = !this.#marks.has(mark.id);
    this.#marks.set(mark.id, mark);
    if (isNew) for (const listener of this.#exhaustedListeners) listener(mark);
  }

  #exhaustedIn(scope: OwnerScope, without?: AgentRun): ExhaustedBudget | undefined {
    const { kind, name } = scope;
    return latest(
      scope.budget.flatMap((limit) => {
        const { per } = limit;
        if (per === 'run' || !isExhausted(limit, this.usedIn(scope, per, without))) return [];
        return [{ kind, name, per, limit, freeAt: endOf(per, this.clock.now()) }];
      }),
    );
  }

  #covers({ id, where }: Mark, place: Place): boolean {
    const scope = ownerScopes(this.caches, where).find((one) => one.id === id);
    return scope === undefined || scope.has(place);
  }

  #touch(isMeant: (mark: Mark) => boolean): void {
    const meant = [...this.#marks.values()].filter((mark) => !mark.isDirty && isMeant(mark));
    for (const mark of meant) mark.isDirty = true;
    if (meant.length > 0) for (const listener of this.#freeListeners) listener();
  }
}

/** A run ended, returned part of its grant, or is gone. */
function freesSomething({ previous, current }: CacheChange<AgentRun>): boolean {
  if (previous === undefined || current === undefined) return current === undefined;
  return (isSettled(current) && !isSettled(previous)) || returnsOf(current) > returnsOf(previous);
}

function latest<T extends ExhaustedBudget>(found: readonly T[]): T | undefined {
  return found.reduce<T | undefined>(
    (last, one) => (last === undefined || one.freeAt > last.freeAt ? one : last),
    undefined,
  );
}

/** The beginning of the next day or month of UTC. */
function endOf(per: Period, now: number): number {
  const at = new Date(now);
  const [year, month] = [at.getUTCFullYear(), at.getUTCMonth()];
  return per === 'day' ? Date.UTC(year, month, at.getUTCDate() + 1) : Date.UTC(year, month + 1, 1);
}

/** The message of a run that waits for it. */
export function describeExhausted({ kind, name, per, limit, freeAt }: ExhaustedBudget): string {
  const { usd, tokens } = limit;
  const amounts = [usd === undefined ? [] : [`${usd} US dollars`], tokens === undefined ? [] : [`${tokens} tokens`]];
  const budget = `${amounts.flat().join(' and ')} a ${per}`;
  const at = new Date(freeAt).toISOString().replace('.000Z', 'Z');
  return `Nothing is left of the budget of ${kind} ${name} (${budget}): it is used, or granted to runs that work. The run starts by itself when they leave something, at ${at} at the latest. Next: raise spec.budget of ${kind} ${name}, or wait.`;
}
