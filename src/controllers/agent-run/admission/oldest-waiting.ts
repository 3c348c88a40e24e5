/** How long the oldest run has been waiting: a metric, and after a day a line in the log. */
import type { RunDependencies } from '../dependencies.js';
import type { RunQueue } from './run-queue.js';

/** A run may wait forever, but from then on the log says so. */
const LONG_WAIT_MS = 24 * 3_600_000;
const WARN_AGAIN_MS = 3_600_000;
const LOOK_AT_WAITING_MS = 60_000;

/** Reports how long the oldest run has been waiting; returns the milliseconds until the next call. */
export function watchOldestWaiting(
  { clock, log, metrics }: Pick<RunDependencies, 'clock' | 'log' | 'metrics'>,
  queue: Pick<RunQueue, 'oldestWaiting'>,
): () => number {
  let warnedAt = -Infinity;
  return () => {
    const oldest = queue.oldestWaiting();
    const waitingMs = oldest === undefined ? 0 : Math.max(0, clock.now() - oldest);
    metrics.oldestWaiting(Math.round(waitingMs / 1000));
    if (waitingMs > LONG_WAIT_MS && clock.monotonic() - warnedAt >= WARN_AGAIN_MS) {
      warnedAt = clock.monotonic();
      log.warn({ hours: Math.floor(waitingMs / 3_600_000) }, 'a run waits for more than a day; its status says why');
    }
    return oldest === undefined ? Infinity : LOOK_AT_WAITING_MS;
  };
}
