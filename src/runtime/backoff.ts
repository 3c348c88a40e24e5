/** Exponential backoff with a cap and jitter. Randomness is injected. */

export interface BackoffOptions {
  /** First delay in milliseconds. */
  baseMs: number;
  /** No delay is longer. */
  maxMs: number;
  /** Share of the delay that is random: 0.2 gives 80-100 % of it. */
  jitter: number;
}

/** The delay before try number `failures + 1`: base, 2 x base, 4 x base, … up to the maximum, less a random part. */
export function backoffDelay(options: BackoffOptions, failures: number, random: () => number = Math.random): number {
  const exponent = Math.min(Math.max(failures - 1, 0), 52);
  const full = Math.min(options.maxMs, options.baseMs * 2 ** exponent);
  return Math.round(full * (1 - options.jitter * random()));
}
