/** A bound for one piece of work: every wait has one. */
import { timeoutSignal } from './timeout-signal.js';
import type { Clock } from './clock.js';

/** Runs `work` with a signal that fires after `ms`, or with the given signal if that fires first. */
export async function withTimeout<T>(
  clock: Clock,
  ms: number,
  work: (signal: AbortSignal) => Promise<T>,
  outer?: AbortSignal,
): Promise<T> {
  const bound = timeoutSignal(clock, ms, outer);
  try {
    return await work(bound.signal);
  } finally {
    bound.dispose();
  }
}
