/** A clock that stands still until a test moves it. */
import type { Clock } from '../../src/runtime/clock.js';

interface Timer {
  at: number;
  callback: () => void;
}

export class FakeClock implements Clock {
  #now: number;
  readonly #start: number;
  readonly #timers = new Set<Timer>();

  constructor(start = Date.parse('2026-01-01T00:00:00.000Z')) {
    this.#now = start;
    this.#start = start;
  }

  now(): number {
    return this.#now;
  }

  monotonic(): number {
    return this.#now - this.#start;
  }

  after(ms: number, callback: () => void): () => void {
    const timer: Timer = { at: this.#now + ms, callback };
    this.#timers.add(timer);
    return () => this.#timers.delete(timer);
  }

  /** Timers that wait. */
  get pending(): number {
    return this.#timers.size;
  }

  /** Advances to the next timer and no further: what it begins has taken no time when this resolves. */
  async advanceToNext(): Promise<void> {
    const next = Math.min(...[...this.#timers].map((timer) => timer.at));
    if (Number.isFinite(next)) await this.advance(Math.max(0, next - this.#now));
  }

  /** Moves time forward, firing timers in order and letting promises settle between them. */
  async advance(ms: number): Promise<void> {
    const end = this.#now + ms;
    for (;;) {
      await settle();
      const next = [...this.#timers].filter((timer) => timer.at <= end).sort((a, b) => a.at - b.at)[0];
      if (next === undefined) break;
      this.#timers.delete(next);
      this.#now = Math.max(this.#now, next.at);
      next.callback();
    }
    this.#now = end;
    await settle();
  }
}

async function settle(): Promise<void> {
  for (let i = 0; i < 20; i++) await Promise.resolve();
  await new Promise((resolve) => setImmediate(resolve));
}
