/**
 * One model call of a served run, with all its tries. What a try has used so far stands open until it is known; each is counted
 * exactly once.
 */
import type { CallInFlight, Said, ServedRun, Waiting } from '../runs/served-runs.js';
import { addCall, type CallUsage } from '../../run/usage/usage.js';

export class ModelCallInFlight implements CallInFlight {
  readonly #served: ServedRun;
  readonly #charge: (usage: CallUsage) => void;
  readonly #controller = new AbortController();
  #spent: (() => CallUsage) | undefined;
  #waiting: Waiting | undefined;
  #answer: Said = { said: '' };

  /** `charge` is told what every try used, once. */
  constructor(served: ServedRun, charge: (usage: CallUsage) => void) {
    this.#served = served;
    this.#charge = charge;
  }

  /** Fires when the run ends or goes to another pod. */
  get signal(): AbortSignal {
    return this.#controller.signal;
  }

  get open(): CallUsage | undefined {
    return this.#spent?.();
  }

  get waiting(): Waiting | undefined {
    return this.#waiting;
  }

  /** A try is about to leave: from now on it has used what `spent` tells. */
  send(spent: () => CallUsage): void {
    this.#spent = spent;
  }

  get answer(): Said {
    return this.#answer;
  }

  /** The provider answers, which can be followed: nothing is waited for any more. */
  works(answer: Said): void {
    this.#waiting = undefined;
    this.#answer = answer;
  }

  /** The answer is there, and says what was used; a call that was cut is charged already. Returns the steps of the run so far. */
  answered(usage: CallUsage): number {
    if (this.signal.aborted) return this.#served.usage.steps;
    this.#spent = undefined;
    this.#count(usage);
    return this.#served.usage.steps;
  }

  /** Nothing was used. */
  unused(): void {
    this.#spent = undefined;
  }

  /** Nobody will know what was used: what is known of it is charged. */
  lost(): void {
    const open = this.#spent?.();
    if (open === undefined) return;
    this.#count({ ...open, unanswered: true });
    this.#spent = undefined;
  }

  /** The next try waits, and is told until one is answered; nothing is open meanwhile. */
  waits(waiting: Waiting): void {
    this.#waiting = waiting;
  }

  /** Charges at once, so that whoever cuts the call stores what it cost. */
  abort(): void {
    this.lost();
    this.#waiting = undefined;
    this.#controller.abort();
  }

  #count(usage: CallUsage): void {
    this.#served.usage = addCall(this.#served.usage, usage);
    this.#charge(usage);
  }
}
