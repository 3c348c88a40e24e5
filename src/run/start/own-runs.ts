/**
 * The backlog budget while a watch lags: a process adds the runs that it has itself started, from before the
 * create until its cache shows them. So calls at once count each other, and the budget is exceeded at most by what other
 * replicas start within the lag of the watch.
 */
import type { CacheChange } from '../../kube/types.js';
import type { Clock } from '../../runtime/clock.js';
import { BacklogCounter } from './backlog.js';
import type { CountedRun } from './backlog.js';
import type { BacklogCount, BacklogReader } from './backlog-budget.js';

/** How long a run counts whose create had no clear end, unless the cache shows it earlier. */
export const UNCLEAR_MS = 60_000;
/** How long a stored run counts that the cache never shows: it was removed while the watch was away. */
export const UNSEEN_MS = 600_000;

/** What became of a create: `unclear` when nobody knows whether the run is stored. */
export type CreateEnd = 'stored' | 'absent' | 'unclear';

/** The place of one run in the budget. To be settled exactly once. */
export interface Reservation {
  settle(end: CreateEnd): void;
}

/** What a start needs of the budget: a place for its run, taken before the create. */
export type ReserveRun = (run: Omit<CountedRun, 'terminal'>) => Reservation;

/** The runs of a cache, finished ones as well. */
export interface KnownRuns {
  get(key: string): unknown;
  onChange(listener: (change: Pick<CacheChange<unknown>, 'key'>) => void): () => void;
}

interface Place {
  key: string;
  run: Omit<CountedRun, 'terminal'>;
  /** Starts under way with this name: repeated deliveries share it. */
  starting: number;
  /** Monotonic time until which it counts without a start under way. */
  until: number | undefined;
}

const SHOWN: Reservation = { settle: () => undefined };

/** Counts what `shown` counts, and the own runs that `known` does not show yet. Each call costs the same, however many runs there are. */
export class OwnRuns implements BacklogReader {
  readonly #places = new Map<string, Place>();
  readonly #counter = new BacklogCounter();
  /** Settled places in the order in which they end; each set has one duration. */
  readonly #unclear = new Set<Place>();
  readonly #stored = new Set<Place>();

  constructor(
    private readonly shown: BacklogReader,
    private readonly known: KnownRuns,
    private readonly clock: Pick<Clock, 'monotonic'>,
  ) {
    known.onChange(({ key }) => {
      const place = this.#places.get(key);
      if (place !== undefined) this.#end(place);
    });
  }

  /** Own runs that count now. */
  get size(): number {
    this.#expire();
    return this.#places.size;
  }

  installation(): BacklogCount {
    this.#expire();
    return sum(this.shown.installation(), this.#counter.installation);
  }

  box(box: string): BacklogCount {
    this.#expire();
    return sum(this.shown.box(box), this.#counter.box(box));
  }

  agent(box: string, agent: string): BacklogCount {
    this.#expire();
    return sum(this.shown.agent(box, agent), this.#counter.agent(box, agent));
  }

  isFinishedFull(box: string): boolean {
    return this.shown.isFinishedFull(box);
  }

  /** Counts a run that is about to be created. To be called in the turn that asked for room: then no other call took it meanwhile. */
  readonly reserve: ReserveRun = (run) => {
    const key = `${run.namespace}/${run.name}`;
    if (this.known.get(key) !== undefined) return SHOWN;
    const place = this.#places.get(key) ?? this.#open(key, run);
    place.starting += 1;
    return { settle: (end) => this.#settle(place, end) };
  };

  #open(key: string, run: Place['run']): Place {
    const place: Place = { key, run, starting: 0, until: undefined };
    this.#places.set(key, place);
    this.#counter.add(run, 1);
    return place;
  }

  #settle(place: Place, end: CreateEnd): void {
    place.starting -= 1;
    // The cache was faster than the answer.
    if (this.#places.get(place.key) !== place) return;
    if (end !== 'absent') this.#keep(place, end);
    else if (place.starting === 0 && place.until === undefined) this.#end(place);
  }

  #keep(place: Place, end: 'stored' | 'unclear'): void {
    if (end === 'unclear' && this.#stored.has(place)) return;
    this.#unclear.delete(place);
    this.#stored.delete(place);
    place.until = this.clock.monotonic() + (end === 'stored' ? UNSEEN_MS : UNCLEAR_MS);
    (end === 'stored' ? this.#stored : this.#unclear).add(place);
  }

  #expire(): void {
    const now = this.clock.monotonic();
    for (const settled of [this.#unclear, this.#stored]) {
      for (const place of settled) {
        if (place.until === undefined || place.until > now) break;
        settled.delete(place);
        place.until = undefined;
        if (place.starting === 0) this.#end(place);
      }
    }
  }

  #end(place: Place): void {
    this.#places.delete(place.key);
    this.#unclear.delete(place);
    this.#stored.delete(place);
    this.#counter.add(place.run, -1);
  }
}

function sum(one: BacklogCount, other: BacklogCount): BacklogCount {
  return { runs: one.runs + other.runs, bytes: one.bytes + other.bytes };
}
