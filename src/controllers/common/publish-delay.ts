/** Counts in a status are meant for people: they are written only once in a while, however many runs come and go. */
import type { Clock } from '../../runtime/clock.js';

/** Counts of one owner are published for kubectl at most once in 5 s. */
export const PUBLISH_INTERVAL_MS = 5_000;

/**
 * Decides when counts that differ from the status are due. The first difference starts the interval, so a short burst
 * that ends where it began writes nothing. In memory only: after a restart the interval begins anew.
 */
export class PublishDelay {
  readonly #dueAt = new Map<string, number>();

  constructor(
    private readonly clock: Pick<Clock, 'monotonic'>,
    private readonly intervalMs: number = PUBLISH_INTERVAL_MS,
  ) {}

  /** Milliseconds until the counts of this owner may be written; 0 = now. Call it only while they differ. */
  waitMs(owner: string): number {
    const now = this.clock.monotonic();
    const due = this.#dueAt.get(owner) ?? now + this.intervalMs;
    this.#dueAt.set(owner, due);
    return Math.max(0, due - now);
  }

  /** The counts of this owner were written, are equal again, or the owner is gone. */
  settle(owner: string): void {
    this.#dueAt.delete(owner);
  }
}
