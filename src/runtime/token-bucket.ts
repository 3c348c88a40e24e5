/** A rate with bursts: tokens come back at a steady pace, up to the size of the bucket. */
import type { Clock } from './clock.js';

export interface TokenRate {
  /** Tokens at the beginning, and at most. */
  burst: number;
  /** Tokens that come back in a second. */
  perSecond: number;
}

export class TokenBucket {
  #tokens: number;
  #at: number;

  constructor(
    private readonly clock: Clock,
    private readonly rate: TokenRate,
  ) {
    this.#tokens = rate.burst;
    this.#at = clock.monotonic();
  }

  /** Takes a token; false when there is none. */
  take(): boolean {
    this.#refill();
    if (this.#tokens < 1) return false;
    this.#tokens -= 1;
    return true;
  }

  /** Milliseconds until there is a token. */
  waitMs(): number {
    this.#refill();
    return this.#tokens >= 1 ? 0 : Math.ceil(((1 - this.#tokens) / this.rate.perSecond) * 1000);
  }

  #refill(): void {
    const now = this.clock.monotonic();
    const back = ((now - this.#at) / 1000) * this.rate.perSecond;
    this.#tokens = Math.min(this.rate.burst, this.#tokens + back);
    this.#at = now;
  }
}
