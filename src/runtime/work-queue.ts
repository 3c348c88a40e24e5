/**
 * Keys that want to be looked at. Semantics of client-go's work queue: a key waits at most once however often it is
 * added; a key that is added while it is processed waits again when it is done; so no key is ever with two workers. Namespaces
 * take turns, so that 10,000 keys of one hold up another's by one key.
 */
import { backoffDelay } from './backoff.js';
import type { BackoffOptions } from './backoff.js';
import type { Clock } from './clock.js';
import { FairFifo } from './fair-fifo.js';
import { TimerHeap } from './timer-heap.js';

export interface WorkQueueOptions {
  clock: Clock;
  /** Of addRateLimited: grows with the failures of a key. */
  backoff: BackoffOptions;
  random?: () => number;
}

export class WorkQueue {
  readonly #backoff: BackoffOptions;
  readonly #random: () => number;
  readonly #delayed: TimerHeap;
  /** Keys that wait, those of a namespace in order; all are in #dirty. */
  readonly #ready = new FairFifo(namespaceOf);
  /** Keys that must be processed (again). */
  readonly #dirty = new Set<string>();
  readonly #processing = new Set<string>();
  readonly #failures = new Map<string, number>();
  readonly #takers: ((key: string | undefined) => void)[] = [];
  #shutDown = false;

  constructor(options: WorkQueueOptions) {
    this.#backoff = options.backoff;
    this.#random = options.random ?? Math.random;
    this.#delayed = new TimerHeap(options.clock, (key) => this.add(key));
  }

  /** Keys that wait for a worker (those of addAfter do not yet). */
  get length(): number {
    return this.#ready.length;
  }

  add(key: string): void {
    if (this.#shutDown || this.#dirty.has(key)) return;
    this.#dirty.add(key);
    if (this.#processing.has(key)) return;
    this.#push(key);
  }

  /** Adds the key after `ms`; of several times for one key the earliest counts. */
  addAfter(key: string, ms: number): void {
    if (this.#shutDown) return;
    if (ms <= 0) this.add(key);
    else this.#delayed.add(key, ms);
  }

  /** Adds the key after its backoff, which doubles with each call until forget(), but at most `maxMs`. Returns the delay. */
  addRateLimited(key: string, maxMs = Infinity): number {
    const failures = (this.#failures.get(key) ?? 0) + 1;
    this.#failures.set(key, failures);
    const backoff = { ...this.#backoff, maxMs: Math.min(this.#backoff.maxMs, maxMs) };
    const delay = backoffDelay(backoff, failures, this.#random);
    this.addAfter(key, delay);
    return delay;
  }

  /** The key succeeded: its next backoff starts small again. */
  forget(key: string): void {
    this.#failures.delete(key);
  }

  /** The next key, waiting for one; undefined after shutDown(). The taker must call done() for each key. */
  take(): Promise<string | undefined> {
    if (this.#shutDown) return Promise.resolve(undefined);
    const key = this.#ready.shift();
    if (key === undefined) return new Promise((resolve) => this.#takers.push(resolve));
    return Promise.resolve(this.#hand(key));
  }

  /** The worker is through with the key; if it was added meanwhile, it waits again. */
  done(key: string): void {
    this.#processing.delete(key);
    if (this.#dirty.has(key) && !this.#shutDown) this.#push(key);
  }

  /** Wakes all takers with undefined and takes nothing more; what waits is dropped: the next leader lists anew. */
  shutDown(): void {
    this.#shutDown = true;
    this.#ready.clear();
    this.#dirty.clear();
    this.#delayed.clear();
    for (const taker of this.#takers.splice(0)) taker(undefined);
  }

  #push(key: string): void {
    const taker = this.#takers.shift();
    if (taker === undefined) this.#ready.push(key);
    else taker(this.#hand(key));
  }

  #hand(key: string): string {
    this.#dirty.delete(key);
    this.#processing.add(key);
    return key;
  }
}

/** Empty for a key of the whole cluster. */
function namespaceOf(key: string): string {
  return key.slice(0, Math.max(0, key.indexOf('/')));
}
