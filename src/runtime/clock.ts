/** Time as a dependency: no code outside this file reads the wall clock or sets a timer (fake clocks in tests). */

export interface Clock {
  /** Milliseconds since the epoch. */
  now(): number;
  /** A clock that never jumps, in milliseconds; for leases, bounds and rates. */
  monotonic(): number;
  /** Calls back once after `ms`; returns cancel. */
  after(ms: number, callback: () => void): () => void;
}

export const systemClock: Clock = {
  now: () => Date.now(),
  monotonic: () => performance.now(),
  after: (ms, callback) => {
    const timer = setTimeout(callback, ms);
    return () => clearTimeout(timer);
  },
};

/** RFC 3339 with milliseconds: the form of every time that we write. */
export function isoNow(clock: Clock): string {
  return new Date(clock.now()).toISOString();
}

/** Resolves after `ms`, or at once when the signal fires (it never rejects: callers look at the signal). */
export function sleep(clock: Clock, ms: number, signal?: AbortSignal): Promise<void> {
  if (signal?.aborted === true) return Promise.resolve();
  return new Promise((resolve) => {
    const done = () => {
      cancel();
      signal?.removeEventListener('abort', done);
      resolve();
    };
    const cancel = clock.after(ms, done);
    signal?.addEventListener('abort', done, { once: true });
  });
}
