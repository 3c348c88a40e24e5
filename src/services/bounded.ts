/** A bound for one piece of work: every wait has one. */
import type { Clock } from '../runtime/clock.js';

/** Runs `work` with a signal that fires after `ms`, or with the given signal if that fires first. */
export async function bounded<T>(
  clock: Clock,
  ms: number,
  work: (signal: AbortSignal) => Promise<T>,
  outer?: AbortSignal,
): Promise<T> {
  const bound = new AbortController();
  const cancel = clock.after(ms, () => bound.abort());
  try {
    return await work(outer === undefined ? bound.signal : AbortSignal.any([outer, bound.signal]));
  } finally {
    cancel();
  }
}
