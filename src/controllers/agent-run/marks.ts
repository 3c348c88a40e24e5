/** How long something has been the case, in this process's memory: grace periods, which may begin again after a restart. */
import type { Clock } from '../../runtime/clock.js';

/** One run, and no other of the same name. */
export interface RunIdentity {
  /** namespace/name. */
  key: string;
  uid: string;
}

interface RunMarks {
  uid: string;
  since: Map<string, number>;
}

export class Marks {
  /** By key, so that they can be forgotten once the key is all that is left of the run. */
  readonly #runs = new Map<string, RunMarks>();

  constructor(private readonly clock: Pick<Clock, 'monotonic'>) {}

  /** Milliseconds since `holds` became true for this run; 0 while it is false. */
  elapsed({ key, uid }: RunIdentity, mark: string, holds: boolean): number {
    const known = this.#runs.get(key);
    const marks = known?.uid === uid ? known : { uid, since: new Map<string, number>() };
    if (!holds) {
      marks.since.delete(mark);
      return 0;
    }
    const now = this.clock.monotonic();
    const since = marks.since.get(mark) ?? now;
    marks.since.set(mark, since);
    this.#runs.set(key, marks);
    return now - since;
  }

  /** The run is gone, or no grace period matters to it any more. */
  forget(key: string): void {
    this.#runs.delete(key);
  }
}
