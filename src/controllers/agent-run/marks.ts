/** Since when something has been as it is, in this process's memory: graces that a restart may start again. */
import type { Clock } from '../../runtime/clock.js';

/** A run, not its namesake. */
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
  /** By key, so that they can be forgotten when nothing but the key is left of the run. */
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

  /** The run is gone or needs no grace any more. */
  forget(key: string): void {
    this.#runs.delete(key);
  }
}
