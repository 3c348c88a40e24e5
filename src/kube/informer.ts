/** A running cache of one kind: the reflector writes it, and this file adds readiness, positions and resync. */
import type { KubeObject } from '../api/meta.js';
import type { Logger } from '../observability/logger.js';
import type { Clock } from '../runtime/clock.js';
import { ObjectCache } from './cache.js';
import type { KubeMetrics } from './metrics.js';
import { PositionWaiters } from './position-waiters.js';
import { Reflector } from './reflector.js';
import type { KubeTransport } from './transport.js';
import type { CacheChange, Informer, InformerOptions } from './types.js';

export interface InformerDependencies {
  clock: Clock;
  log: Logger;
  metrics?: Pick<KubeMetrics, 'relisted' | 'watchRestarted'>;
  /** Replays the cache to the listeners about this often; absent = never. */
  resyncMs?: number;
  random?: () => number;
}

/** Does nothing before start(). */
export function createInformer<T extends KubeObject, P>(
  transport: KubeTransport,
  options: InformerOptions<T, P>,
  dependencies: InformerDependencies,
): Informer<P> {
  return new WatchingInformer(transport, options, dependencies);
}

class WatchingInformer<T extends KubeObject, P> implements Informer<P> {
  readonly synced: Promise<void>;
  readonly #cache: ObjectCache<P>;
  readonly #reflector: Reflector<T, P>;
  readonly #waiters = new PositionWaiters();
  readonly #dependencies: InformerDependencies;
  readonly #stopping = new AbortController();
  #markSynced: () => void = () => undefined;
  #running: Promise<void> | undefined;
  #cancelResync: () => void = () => undefined;

  constructor(transport: KubeTransport, options: InformerOptions<T, P>, dependencies: InformerDependencies) {
    this.#dependencies = dependencies;
    this.synced = new Promise((resolve) => (this.#markSynced = resolve));
    this.#cache = new ObjectCache({
      ...(options.indexes === undefined ? {} : { indexes: options.indexes }),
      onListenerError: (error) =>
        dependencies.log.error({ resource: options.type.plural, err: error }, 'a listener of the cache failed'),
    });
    const { clock, log, metrics } = dependencies;
    this.#reflector = new Reflector(options, this.#sink(), {
      transport,
      clock,
      log,
      random: dependencies.random ?? Math.random,
      ...(metrics === undefined ? {} : { metrics }),
    });
  }

  get size(): number {
    return this.#cache.size;
  }

  get changes(): number {
    return this.#cache.changes;
  }

  get(key: string): P | undefined {
    return this.#cache.get(key);
  }

  values(): IterableIterator<P> {
    return this.#cache.values();
  }

  byIndex(index: string, value: string): readonly P[] {
    return this.#cache.byIndex(index, value);
  }

  onChange(listener: (change: CacheChange<P>) => void): () => void {
    return this.#cache.onChange(listener);
  }

  isHealthy(): boolean {
    return this.#reflector.isFresh();
  }

  waitForResourceVersion(resourceVersion: string, signal: AbortSignal): Promise<boolean> {
    return this.#waiters.wait(resourceVersion, signal);
  }

  start(): void {
    if (this.#running !== undefined || this.#stopping.signal.aborted) return;
    this.#running = this.#reflector.run(this.#stopping.signal);
    this.#scheduleResync();
  }

  /** Resolves when the watch is closed; after that no listener is called. Waiters are told false. */
  async stop(): Promise<void> {
    this.#stopping.abort();
    this.#cancelResync();
    this.#waiters.close();
    await this.#running;
  }

  #sink() {
    return {
      replaceAll: (list: ReadonlyMap<string, { value: P; version: string }>) => this.#cache.replaceAll(list),
      set: (key: string, value: P, version: string) => this.#cache.set(key, value, version),
      delete: (key: string) => this.#cache.delete(key),
      moved: (resourceVersion: string) => {
        this.#waiters.moved(resourceVersion);
        this.#markSynced();
      },
    };
  }

  /** 90 to 110 % of the interval, so that informers of one process do not replay at the same moment. */
  #scheduleResync(): void {
    const { resyncMs, clock, random = Math.random } = this.#dependencies;
    if (resyncMs === undefined) return;
    this.#cancelResync = clock.after(resyncMs * (0.9 + 0.2 * random()), () => {
      this.#cache.replay();
      this.#scheduleResync();
    });
  }
}
