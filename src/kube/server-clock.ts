/**
 * The time of the API server, for everything that we compare with its timestamps or write beside them. The wall clock of
 * a node may jump by hours (a suspended machine, a wrong time server); bounds of runs, ticks of schedules and ages for
 * retention must not jump with it. So the wall clock is followed only while the API server's answers agree with it;
 * otherwise their `Date` is, carried forward on the monotonic clock.
 */
import type { Clock } from '../runtime/clock.js';

/** `Date` has whole seconds, and an answer may wait for a busy process: less than this is no disagreement. */
const TOLERANCE_MS = 10_000;
const SECOND_MS = 1000;

export class ServerClock implements Clock {
  readonly #own: Clock;
  /** Time of the API server minus our monotonic clock. */
  #offset: number;

  /** Until the first answer the own wall clock, as it is now, is believed. */
  constructor(own: Clock) {
    this.#own = own;
    this.#offset = this.#ownOffset();
  }

  now(): number {
    return Math.floor(this.#offset + this.#own.monotonic());
  }

  monotonic(): number {
    return this.#own.monotonic();
  }

  after(ms: number, callback: () => void): () => void {
    return this.#own.after(ms, callback);
  }

  /** The header `Date` of an answer that the API server gave a moment ago; anything else than a date is ignored. */
  heard(date: unknown): void {
    const second = typeof date === 'string' ? Date.parse(date) : NaN;
    if (Number.isNaN(second)) return;
    const middle = second + SECOND_MS / 2 - this.#own.monotonic();
    const own = this.#ownOffset();
    if (agree(own, middle)) this.#offset = own;
    else if (!agree(this.#offset, middle)) this.#offset = middle;
  }

  #ownOffset(): number {
    return this.#own.now() - this.#own.monotonic();
  }
}

function agree(one: number, other: number): boolean {
  return Math.abs(one - other) <= TOLERANCE_MS;
}
