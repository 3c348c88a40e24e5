/** One model call of a served run: what it may cost stands open until it is known what it did cost. Counted exactly once. */
import type { CallInFlight, ServedRun } from '../runs/served-runs.js';
import { addCall, type CallUsage } from '../../run/usage/usage.js';

export class ModelCallInFlight implements CallInFlight {
  readonly #served: ServedRun;
  readonly #controller = new AbortController();
  #open: CallUsage | undefined;

  constructor(served: ServedRun) {
    this.#served = served;
  }

  /** Fires when the run ends or goes to another pod. */
  get signal(): AbortSignal {
    return this.#controller.signal;
  }

  get open(): CallUsage | undefined {
    return this.#open;
  }

  /** The request is about to leave: from now on it may cost up to `reservation`. */
  send(reservation: CallUsage): void {
    this.#open = reservation;
  }

  /** The answer is there, and says what was used; a call that was cut is charged already. Returns the steps of the run so far. */
  answered(usage: CallUsage): number {
    if (this.signal.aborted) return this.#served.usage.steps;
    this.#open = undefined;
    this.#served.usage = addCall(this.#served.usage, usage);
    return this.#served.usage.steps;
  }

  /** Nothing was used. */
  unused(): void {
    this.#open = undefined;
  }

  /** Nobody will know what was used: the reservation is charged. */
  lost(): void {
    if (this.#open === undefined) return;
    this.#served.usage = addCall(this.#served.usage, { ...this.#open, unanswered: true });
    this.#open = undefined;
  }

  /** Charges at once, so that whoever cuts the call stores what it cost. */
  abort(): void {
    this.lost();
    this.#controller.abort();
  }
}
