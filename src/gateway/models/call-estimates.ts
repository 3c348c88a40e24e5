/**
 * What the next model call of a run will read, in the tokens of its provider: our own measure, and how the provider counted the
 * call before it. Conversations grow at their end, so that all but the newest messages is known exactly.
 */
import type { Provider } from '../../api/v1alpha1/common.js';
import type { TokenCounts } from '../../run/usage/prices.js';

/**
 * Tokens of the provider for one of our measure, before it has counted anything: on the high side, since a budget rests on it.
 * Anthropic's vocabulary makes more tokens of the same text than all others.
 */
const FIRST_RATIO: Readonly<Partial<Record<Provider, number>>> = { anthropic: 1.3 };
const OTHER_FIRST_RATIO = 1.12;
/** What is new in a call may be of another kind than what was counted. */
const MARGIN = 1.1;
/** Bounds of what is believed of a provider that counts oddly. */
const LEAST_RATIO = 0.25;
const MOST_RATIO = 4;
/** What it wrote is not learned from: thoughts that are counted are not shown. */
const LEAST_OUTPUT_RATIO = 0.7;
const MOST_OUTPUT_RATIO = 1.5;

export class CallEstimates {
  readonly #first: number;
  #last: { measured: number; told: TokenCounts } | undefined;

  constructor(provider: string) {
    this.#first = FIRST_RATIO[provider as Provider] ?? OTHER_FIRST_RATIO;
  }

  /** Input tokens of a call of that measure: rather too many than too few, for a budget. */
  inputOf(measured: number): number {
    return this.#input(measured, MARGIN);
  }

  #input(measured: number, margin: number): number {
    if (this.#last === undefined) return Math.ceil(measured * this.#first);
    const ratio = within(LEAST_RATIO, this.#ratio, MOST_RATIO) * margin;
    const more = measured - this.#last.measured;
    // A conversation that became shorter was summarised: nothing of it is known to be the same.
    return Math.ceil(more < 0 ? measured * ratio : this.#last.told.inputTokens + more * ratio);
  }

  /**
   * What a call used that never said so: its input, of which as much came from the cache as the call before left there, and
   * what was written of it.
   */
  countsOf({ measured, written }: { measured: number; written: number }): TokenCounts {
    const input = this.#input(measured, 1);
    const { cacheReadTokens = 0, cacheWriteTokens = 0 } = this.#last?.told ?? {};
    return {
      inputTokens: input,
      cacheReadTokens: Math.min(input, cacheReadTokens + cacheWriteTokens),
      cacheWriteTokens: 0,
      outputTokens: Math.ceil(written * within(LEAST_OUTPUT_RATIO, this.#ratio, MOST_OUTPUT_RATIO)),
    };
  }

  /** The provider has counted a call of that measure. */
  learn(measured: number, told: TokenCounts): void {
    if (measured > 0 && told.inputTokens > 0) this.#last = { measured, told };
  }

  get #ratio(): number {
    return this.#last === undefined ? this.#first : this.#last.told.inputTokens / this.#last.measured;
  }
}

function within(least: number, value: number, most: number): number {
  return Math.min(most, Math.max(least, value));
}
