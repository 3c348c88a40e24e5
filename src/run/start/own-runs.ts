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

/** The room that one run takes in the budget. To be settled exactly once. */
export interface Reservation {
  settle(end: CreateEnd): void;
}

/** What a start needs of the budget: room for its run, reserved before the create. */
export type ReserveRun = (run: Omit<CountedRun, 'terminal'>) => Reservation;

/** The runs of a cache, finished ones as well. */
export interface KnownRuns {
  get(key: string): unknown;
  onChange(listener: (change: Pick<CacheChange<unknown>, 'key'>) => void): () => void;
}

interface Reserved {
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
  readonly #reserved = new Map<string, Reserved>();
  readonly #counter = new BacklogCounter();
  /** Settled reservations in the order in which they end; each set has one duration. */
  readonly #unclear = new Set<Reserved>();
  readonly #stored = new Set<Reserved>();

  constructor(
    private readonly shown: BacklogReader,
    private readonly known: KnownRuns,
    private readonly clock: Pick<Clock, 'monotonic'>,
  ) {
    known.onChange(({ key }) => {
      const reserved = this.#reserved.get(key);
      if (reserved !== undefined) this.#end(reserved);
    });
  }

  /** Own runs that count now. */
  get size(): number {
    this.#expire();
    return this.#reserved.size;
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
    const reserved = this.#reserved.get(key) ?? this.#open(key, run);
    reserved.starting += 1;
    return { settle: (end) => this.#settle(reserved, end) };
  };

  #open(key: string, run: Reserved['run']): Reserved {
    const reserved: Reserved = { key, run, starting: 0, until: undefined };
    this.#reserved.set(key, reserved);
    this.#counter.add(run, 1);
    return reserved;
  }

  #settle(reserved: Reserved, end: CreateEnd): void {
    reserved.starting -= 1;
    // The cache was faster than the answer.
    if (this.#reserved.get(reserved.key) !== reserved) return;
    if (end !== 'absent') this.#keep(reserved, end);
    else if (reserved.starting === 0 && reserved.until === undefined) this.#end(reserved);
  }

  #keep(reserved: Reserved, end: 'stored' | 'unclear'): void {
    if (end === 'unclear' && this.#stored.has(reserved)) return;
    this.#unclear.delete(reserved);
    this.#stored.delete(reserved);
    reserved.until = this.clock.monotonic() + (end === 'stored' ? UNSEEN_MS : UNCLEAR_MS);
    (end === 'stored' ? this.#stored : this.#unclear).add(reserved);
  }

  #expire(): void {
    const now = this.clock.monotonic();
    for (const settled of [this.#unclear, this.#stored]) {
      for (const reserved of settled) {
        if (reserved.until === undefined || reserved.until > now) break;
        settled.delete(reserved);
        reserved.until = undefined;
        if (reserved.starting === 0) this.#end(reserved);
      }
    }
  }

  #end(reserved: Reserved): void {
    this.#reserved.delete(reserved.key);
    this.#unclear.delete(reserved);
    this.#stored.delete(reserved);
    this.#counter.add(reserved.run, -1);
  }
}

function sum(one: BacklogCount, other: BacklogCount): BacklogCount {
  return { runs: one.runs + other.runs, bytes: one.bytes + other.bytes };
}
