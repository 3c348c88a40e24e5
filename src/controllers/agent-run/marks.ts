/** Since when something has been as it is, in this process's memory: graces that a restart may start again. */
import type { Clock } from '../../runtime/clock.js';

export class Marks {
  readonly #since = new Map<string, Map<string, number>>();

  constructor(private readonly clock: Pick<Clock, 'monotonic'>) {}

  /** Milliseconds since `holds` became true for this object; 0 while it is false. */
  elapsed(uid: string, mark: string, holds: boolean): number {
    const marks = this.#since.get(uid);
    if (!holds) {
      marks?.delete(mark);
      return 0;
    }
    const now = this.clock.monotonic();
    const since = marks?.get(mark);
    if (since !== undefined) return now - since;
    if (marks === undefined) this.#since.set(uid, new Map([[mark, now]]));
    else marks.set(mark, now);
    return 0;
  }

  /** The object is gone or needs no grace any more. */
  forget(uid: string): void {
    this.#since.delete(uid);
  }
}
