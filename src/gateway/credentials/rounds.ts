/** Secrets wake nobody: whatever tells of them looks at what changed at once, and at everything again from time to time. */
import { isConflict, isNotFound } from '../../kube/errors.js';
import type { Logger } from '../../observability/logger.js';
import { sleep } from '../../runtime/clock.js';
import type { Clock } from '../../runtime/clock.js';
import type { Runnable } from '../../runtime/manager.js';
import { withTimeout } from '../../runtime/with-timeout.js';

/** Longest look at one object. */
const CALL_MS = 10_000;

export interface RoundsOptions {
  name: string;
  clock: Clock;
  log: Logger;
  /** Everything is looked at again this often. */
  everyMs: number;
  /** Keys of all objects. */
  all: () => Iterable<string>;
  /** Calls back with the key of each object that is to be looked at now; returns unsubscribe. */
  onChange: (changed: (key: string) => void) => () => void;
  /** Called before objects are looked at that became due together; returns what looks at one of them. */
  begin: () => (key: string, signal: AbortSignal) => Promise<void>;
  /** What the log says when a look failed. */
  failure: string;
}

/** One object after the other; what fails is tried again in the next round. */
export function createRounds(options: RoundsOptions): Runnable {
  const { clock } = options;
  const stopping = new AbortController();
  const due = new Set<string>();
  let wake: () => void = () => undefined;
  let unsubscribe: () => void = () => undefined;
  let running: Promise<void> = Promise.resolve();

  const lookAtDue = async (): Promise<void> => {
    const look = options.begin();
    const keys = [...due];
    due.clear();
    for (const key of keys) if (!stopping.signal.aborted) await lookSafely(options, look, key, stopping.signal);
  };

  const run = async (): Promise<void> => {
    while (!stopping.signal.aborted) {
      for (const key of options.all()) due.add(key);
      const round = clock.monotonic() + options.everyMs;
      while (!stopping.signal.aborted && clock.monotonic() < round) {
        if (due.size > 0) await lookAtDue();
        const woken = new AbortController();
        wake = () => woken.abort();
        if (due.size > 0) continue;
        const wait = AbortSignal.any([stopping.signal, woken.signal]);
        await sleep(clock, Math.max(0, round - clock.monotonic()), wait);
      }
    }
  };

  return {
    name: options.name,
    start: () => {
      unsubscribe = options.onChange((key) => {
        due.add(key);
        wake();
      });
      running = run();
    },
    stop: () => {
      unsubscribe();
      stopping.abort();
      return running;
    },
  };
}

async function lookSafely(
  { clock, log, failure }: RoundsOptions,
  look: (key: string, signal: AbortSignal) => Promise<void>,
  key: string,
  stopping: AbortSignal,
): Promise<void> {
  try {
    await withTimeout(clock, CALL_MS, (signal) => look(key, signal), stopping);
  } catch (error) {
    // Another writer was faster: its change brings the object here again.
    if (!isConflict(error) && !isNotFound(error) && !stopping.aborted) log.warn({ err: error, object: key }, failure);
  }
}
