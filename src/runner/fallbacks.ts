/** Which model of an agent goes on when one does not serve. */
import type { EngineInput } from './engine.js';
import type { Loop } from './engine-loop.js';
import { isNotServed, isUnpriced } from './model-failure.js';

type Fallback = NonNullable<EngineInput['fallbacks']>[number];

export class Fallbacks {
  readonly #left: Fallback[];
  /** Why the model that answered last does not serve, while another one is tried in its place. */
  #cause: unknown;

  constructor(fallbacks: EngineInput['fallbacks'] = []) {
    this.#left = [...fallbacks];
  }

  /** The model that is asked now has done its work. */
  answered(): void {
    this.#cause = undefined;
  }

  /**
   * The model that goes on after a failed call; undefined when another one would not help, or none is left. Throws why the model
   * before does not serve when the last one was passed over: what an agent's own model lacks is to be mended, one that only
   * helps out can be done without.
   */
  async after(error: unknown, loop: Pick<Loop, 'goOnWith' | 'passOver'>): Promise<Fallback | undefined> {
    const isPassedOver = this.#cause !== undefined && isUnpriced(error);
    if (isPassedOver) await loop.passOver(error);
    else this.#cause = isNotServed(error) ? error : undefined;
    const next = this.#cause === undefined ? undefined : this.#left.shift();
    if (next !== undefined) await loop.goOnWith(next, this.#cause);
    else if (isPassedOver) throw this.#cause;
    return next;
  }
}
