/**
 * What the runs of this pod told and what is not stored yet, for those who look at a run while it works. It is bounded, and
 * nothing depends on it: the runner holds every event until it is stored, and tells another pod again.
 * See docs/architecture.md#what-a-working-run-does-now.
 */
import type { RunEvent } from '../../protocol/run.js';

/** Of one run; a runner holds 64 events that are not stored, and a few. */
const MAX_EVENTS = 128;
const MAX_BYTES = 2 * 1024 * 1024;
/** Of all runs of the process. */
const MAX_BYTES_OF_ALL = 64 * 1024 * 1024;

/** What the events of all runs of a process hold together. */
export class LiveBudget {
  bytes = 0;

  constructor(readonly maxBytes = MAX_BYTES_OF_ALL) {}
}

/** Somebody who follows a run. */
export interface LiveListener {
  /** What happened, once each and in order; its size in JSON. */
  told(event: RunEvent, bytes: number): void;
  /** This pod serves the run no more. */
  ended(): void;
}

interface Told {
  event: RunEvent;
  bytes: number;
}

export class LiveEvents {
  readonly #budget: LiveBudget;
  #told: Told[] = [];
  #bytes = 0;
  #last = 0;
  /** Highest sequence that had to make room. */
  #dropped = 0;
  #stored = 0;
  readonly #listeners = new Set<LiveListener>();

  constructor(budget: LiveBudget) {
    this.#budget = budget;
  }

  /** Highest sequence that was told or stored. */
  get last(): number {
    return Math.max(this.#last, this.#stored);
  }

  /** Takes what is new of a report. Without room the oldest go. */
  tell(events: readonly RunEvent[]): void {
    for (const event of events) {
      if (event.seq <= this.last) continue;
      this.#last = event.seq;
      const bytes = Buffer.byteLength(JSON.stringify(event));
      for (const listener of this.#listeners) listener.told(event, bytes);
      this.#told.push({ event, bytes });
      this.#hold(bytes);
      while (this.#isOver()) this.#dropped = this.#drop();
    }
  }

  /** Everything up to this sequence is stored: whoever looks finds it there. */
  stored(ack: number): void {
    this.#stored = Math.max(this.#stored, ack);
    while (this.#told[0] !== undefined && this.#told[0].event.seq <= ack) this.#drop();
  }

  /** What was told after this sequence and is not stored; incomplete when some of it had to make room. */
  after(seq: number): { events: RunEvent[]; incomplete: boolean } {
    const events = this.#told.map(({ event }) => event).filter((event) => event.seq > seq);
    return { events, incomplete: this.#dropped > Math.max(seq, this.#stored) };
  }

  /** Tells what happens from now on; returns how to stop. */
  follow(listener: LiveListener): () => void {
    this.#listeners.add(listener);
    return () => void this.#listeners.delete(listener);
  }

  /** The run is not served here any more. */
  clear(): void {
    while (this.#told.length > 0) this.#drop();
    for (const listener of this.#listeners) listener.ended();
  }

  /** Removes the oldest; its sequence. */
  #drop(): number {
    const oldest = this.#told.shift();
    this.#hold(-(oldest?.bytes ?? 0));
    return oldest?.event.seq ?? 0;
  }

  #hold(bytes: number): void {
    this.#bytes += bytes;
    this.#budget.bytes += bytes;
  }

  #isOver(): boolean {
    if (this.#told.length === 0) return false;
    return this.#told.length > MAX_EVENTS || this.#bytes > MAX_BYTES || this.#budget.bytes > this.#budget.maxBytes;
  }
}
