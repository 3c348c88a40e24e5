/** One abort signal out of a time bound and the caller's signal, without leaving listeners behind. */
import type { Clock } from '../runtime/clock.js';

export class Deadline {
  readonly #controller = new AbortController();
  readonly #parent: AbortSignal | undefined;
  #cancelTimer: () => void;
  #expired = false;

  constructor(clock: Clock, ms: number, parent?: AbortSignal) {
    this.#parent = parent;
    this.#cancelTimer = clock.after(ms, () => {
      this.#expired = true;
      this.#controller.abort();
    });
    if (parent?.aborted === true) this.#onParentAbort();
    else parent?.addEventListener('abort', this.#onParentAbort, { once: true });
  }

  get signal(): AbortSignal {
    return this.#controller.signal;
  }

  /** The time ran out, as opposed to the caller's signal. */
  get expired(): boolean {
    return this.#expired;
  }

  /** The time bound no longer holds; the caller's signal still does. */
  lift(): void {
    this.#cancelTimer();
  }

  /** To be called when the work is over, whatever its end. */
  dispose(): void {
    this.#cancelTimer();
    this.#parent?.removeEventListener('abort', this.#onParentAbort);
  }

  readonly #onParentAbort = (): void => {
    this.#controller.abort(this.#parent?.reason);
  };
}
