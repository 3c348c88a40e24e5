/**
 * Sums that stop at what a status can hold. What models say they used is not to be trusted: one absurd number must not make
 * every later write of a run, an Agent, a Box or a Workspace invalid.
 */

/** The largest whole number of the CRDs: counts of tokens and of millionths of a US dollar end here. */
export const MAX_COUNT = Number.MAX_SAFE_INTEGER;

/** The most tokens that one model call can use, a hundred times the largest context of known models; more is not believed. */
export const MAX_CALL_TOKENS = 100_000_000;

/** The sum, as a whole number from 0 to {@link MAX_COUNT}. What is no number counts as nothing. */
export function sumOf(...counts: readonly number[]): number {
  return counts.reduce((sum, count) => Math.min(MAX_COUNT, sum + withinCounts(count)), 0);
}

/** The count as a status can hold it: whole, not below 0, at most {@link MAX_COUNT}. */
export function withinCounts(count: number): number {
  return Number.isNaN(count) ? 0 : Math.min(MAX_COUNT, Math.max(0, Math.ceil(count)));
}
