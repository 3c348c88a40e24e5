/**
 * Waiting for a change of one cached object: the informer's event resolves the waiter. No polling, no request, one
 * listener for any number of waiters.
 */
import type { Cache } from './types.js';
import type { Clock } from '../runtime/clock.js';

export interface WaitOptions<P> {
  /** Key of the object in the cache. */
  key: string;
  until: (object: P) => boolean;
  ms: number;
  /** Ends the wait early, for example when the client is gone. */
  signal?: AbortSignal;
}

interface Waiting<P> {
  until: (object: P) => boolean;
  resolve: (object: P | undefined) => void;
}

export class KeyedWaiter<P> {
  readonly #cache: Pick<Cache<P>, 'get' | 'onChange'>;
  readonly #clock: Clock;
  readonly #waiting = new Map<string, Set<Waiting<P>>>();
  #stopped = false;

  constructor(cache: Pick<Cache<P>, 'get' | 'onChange'>, clock: Clock) {
    this.#cache = cache;
    this.#clock = clock;
    cache.onChange(({ key, current }) => {
      for (const waiting of this.#waiting.get(key) ?? []) {
        if (current === undefined) waiting.resolve(undefined);
        else if (waiting.until(current)) waiting.resolve(current);
      }
    });
  }

  /**
   * Resolves with the object as soon as `until` holds for it; with undefined when the time is over, the signal fires, the
   * object is removed or {@link stop} is called. Never rejects.
   */
  wait({ key, until, ms, signal }: WaitOptions<P>): Promise<P | undefined> {
    const now = this.#cache.get(key);
    if (now !== undefined && until(now)) return Promise.resolve(now);
    if (this.#stopped || ms <= 0 || signal?.aborted === true) return Promise.resolve(undefined);
    return new Promise((resolve) => {
      const waiting: Waiting<P> = {
        until,
        resolve: (object) => {
          cancel();
          signal?.removeEventListener('abort', giveUp);
          this.#remove(key, waiting);
          resolve(object);
        },
      };
      const giveUp = () => waiting.resolve(undefined);
      const cancel = this.#clock.after(ms, giveUp);
      signal?.addEventListener('abort', giveUp, { once: true });
      this.#add(key, waiting);
    });
  }

  /** Number of open waits. */
  get size(): number {
    let size = 0;
    for (const set of this.#waiting.values()) size += set.size;
    return size;
  }

  /** Ends every wait, now and later: the process is asked to stop. */
  stop(): void {
    this.#stopped = true;
    for (const set of this.#waiting.values()) for (const waiting of set) waiting.resolve(undefined);
  }

  #add(key: string, waiting: Waiting<P>): void {
    const set = this.#waiting.get(key);
    if (set === undefined) this.#waiting.set(key, new Set([waiting]));
    else set.add(waiting);
  }

  #remove(key: string, waiting: Waiting<P>): void {
    const set = this.#waiting.get(key);
    set?.delete(waiting);
    if (set?.size === 0) this.#waiting.delete(key);
  }
}
