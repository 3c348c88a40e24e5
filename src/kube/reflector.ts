/**
 * Follows one list of the API server: reads it page by page, then watches it, and goes on for ever. A 410 means list
 * again; any other end of a watch resumes at the last resourceVersion that was seen. Watches fail silently in Node,
 * so one that brings neither an event nor a bookmark in time is cut and resumed.
 */
import type { KubeObject, ResourceType } from '../api/meta.js';
import { objectKey } from '../api/meta.js';
import type { Logger } from '../observability/logger.js';
import { backoffDelay } from '../runtime/backoff.js';
import type { BackoffOptions } from '../runtime/backoff.js';
import type { Clock } from '../runtime/clock.js';
import { sleep } from '../runtime/clock.js';
import { collectionPath, listPages } from './client.js';
import { isGone } from './errors.js';
import type { KubeMetrics, WatchRestartReason } from './metrics.js';
import type { KubeTransport } from './transport.js';
import { errorFromStatus } from './transport.js';

/** Where the objects go. `replaceAll` is a full list; `moved` comes after each event, bookmark and list. */
export interface ReflectorSink<P> {
  replaceAll(list: ReadonlyMap<string, { value: P; version: string }>): void;
  set(key: string, value: P, version: string): void;
  delete(key: string): void;
  moved(resourceVersion: string): void;
}

export interface ReflectorOptions<T extends KubeObject, P> {
  type: ResourceType<T>;
  namespace?: string;
  labelSelector?: string;
  fieldSelector?: string;
  pageSize?: number;
  project: (object: T) => P;
}

export interface ReflectorDependencies {
  transport: KubeTransport;
  clock: Clock;
  log: Logger;
  random: () => number;
  metrics?: Pick<KubeMetrics, 'relisted' | 'watchRestarted'>;
}

/** The API server sends a bookmark each minute, so a longer silence is a dead connection. */
const SILENCE_BOUND_MS = 75_000;
/** Two cut watches: then the cache is called stale. */
const STALE_BOUND_MS = 2 * SILENCE_BOUND_MS;
/** The API server ends watches after this, spread so that not all informers come back at once. */
const WATCH_SECONDS = { min: 240, spread: 240 };
/** The longest pause decides how late a process sees the cluster after the API server came back; a try costs little. */
const BACKOFF: BackoffOptions = { baseMs: 200, maxMs: 5_000, jitter: 0.5 };
/** A server that went back to older data (a restored etcd) lets a newer position wait for ever: list again then. */
const SILENT_WATCHES_BEFORE_RELIST = 2;

interface WatchEvent {
  type: 'ADDED' | 'MODIFIED' | 'DELETED' | 'BOOKMARK' | 'ERROR';
  object: KubeObject & { code?: number; reason?: string; message?: string };
}

export class Reflector<T extends KubeObject, P> {
  readonly #options: ReflectorOptions<T, P>;
  readonly #dependencies: ReflectorDependencies;
  readonly #sink: ReflectorSink<P>;
  /** resourceVersion of the last list, event or bookmark; undefined = the next thing to do is a list. */
  #position: string | undefined;
  /** Monotonic time of the last list, event or bookmark. */
  #lastSign: number | undefined;
  #failures = 0;
  /** Watches that ended in silence since the last list, event or bookmark. */
  #silentWatches = 0;

  constructor(options: ReflectorOptions<T, P>, sink: ReflectorSink<P>, dependencies: ReflectorDependencies) {
    this.#options = options;
    this.#sink = sink;
    this.#dependencies = dependencies;
  }

  /** Whether the cache is complete and was confirmed by the API server in time. */
  isFresh(): boolean {
    return this.#lastSign !== undefined && this.#dependencies.clock.monotonic() - this.#lastSign < STALE_BOUND_MS;
  }

  /** Runs until the signal fires. Never rejects. */
  async run(signal: AbortSignal): Promise<void> {
    while (!signal.aborted) {
      try {
        if (this.#position === undefined) await this.#list(signal);
        else await this.#watch(this.#position, signal);
      } catch (error) {
        if (signal.aborted) return;
        this.#failed(error);
      }
      if (this.#failures > 0) await sleep(this.#dependencies.clock, this.#retryDelay(), signal);
    }
  }

  async #list(signal: AbortSignal): Promise<void> {
    const { type } = this.#options;
    const list = new Map<string, { value: P; version: string }>();
    const version = await listPages(this.#dependencies.transport, type, { ...this.#scope(), signal }, (items) => {
      for (const item of items) {
        const value = this.#project(item);
        if (value === undefined) continue;
        list.set(objectKey(item.metadata), { value, version: item.metadata.resourceVersion ?? '' });
      }
    });
    if (signal.aborted) return;
    this.#dependencies.metrics?.relisted(type.plural);
    this.#sink.replaceAll(list);
    this.#moved(version);
  }

  /** One watch from open to end. Returns when it ended as watches do; throws when it broke. */
  async #watch(position: string, signal: AbortSignal): Promise<void> {
    const { transport, clock } = this.#dependencies;
    const watchdog = new Watchdog(clock, SILENCE_BOUND_MS, signal);
    const opened = clock.monotonic();
    let signs = 0;
    try {
      const events = await transport.watch({ ...this.#watchRequest(position), signal: watchdog.signal });
      for await (const event of events) {
        if (signal.aborted) return;
        watchdog.feed();
        signs += 1;
        this.#apply(event as WatchEvent);
      }
    } catch (error) {
      if (!watchdog.barked) throw error;
    } finally {
      watchdog.dispose();
    }
    if (signal.aborted) return;
    if (watchdog.barked) this.#wasSilent();
    else {
      this.#restarted('ended');
      // A server or proxy that ends every watch at once must not be asked in a tight loop.
      if (signs === 0 && clock.monotonic() - opened < 1000) this.#failures += 1;
    }
  }

  #watchRequest(position: string) {
    const { type, namespace, labelSelector, fieldSelector } = this.#options;
    const seconds = WATCH_SECONDS.min + Math.floor(WATCH_SECONDS.spread * this.#dependencies.random());
    return {
      verb: 'watch',
      resource: type.plural,
      method: 'GET' as const,
      path: collectionPath(type, namespace, 'optional'),
      query: {
        watch: '1',
        allowWatchBookmarks: 'true',
        resourceVersion: position,
        timeoutSeconds: String(seconds),
        labelSelector,
        fieldSelector,
      },
    };
  }

  #apply(event: WatchEvent): void {
    const { object } = event;
    if (event.type === 'ERROR') {
      throw errorFromStatus(object, `watch ${this.#options.type.plural}`);
    }
    const version = object.metadata.resourceVersion ?? '';
    if (event.type !== 'BOOKMARK') {
      const key = objectKey(object.metadata);
      const value = event.type === 'DELETED' ? undefined : this.#project(object as unknown as T);
      if (value === undefined) this.#sink.delete(key);
      else this.#sink.set(key, value, version);
    }
    this.#moved(version);
  }

  /** One object that the projection cannot take must not stop all others: it counts as absent. */
  #project(object: T): P | undefined {
    try {
      return this.#options.project(object);
    } catch (error) {
      const { namespace, name } = object.metadata;
      this.#dependencies.log.error(
        { resource: this.#options.type.plural, namespace, name, err: error },
        'object cannot be read and is left out',
      );
      return undefined;
    }
  }

  #moved(version: string): void {
    this.#position = version;
    this.#lastSign = this.#dependencies.clock.monotonic();
    this.#failures = 0;
    this.#silentWatches = 0;
    this.#sink.moved(version);
  }

  #failed(error: unknown): void {
    const { log } = this.#dependencies;
    const resource = this.#options.type.plural;
    this.#failures += 1;
    if (isGone(error)) {
      if (this.#position !== undefined) this.#restarted('gone');
      this.#position = undefined;
      log.info({ resource }, 'watch position is too old, listing again');
      return;
    }
    if (this.#position !== undefined) this.#restarted('error');
    // One failure is a restart of the API server or of something between; several are worth a look.
    const level = this.#failures < 3 ? 'info' : 'warn';
    log[level]({ resource, failures: this.#failures, err: error }, 'list or watch failed, trying again');
  }

  #wasSilent(): void {
    const resource = this.#options.type.plural;
    this.#restarted('silent');
    this.#silentWatches += 1;
    const relist = this.#silentWatches >= SILENT_WATCHES_BEFORE_RELIST;
    if (relist) this.#position = undefined;
    this.#dependencies.log.warn({ resource, relist }, 'watch was silent for too long, starting it again');
  }

  #restarted(reason: WatchRestartReason): void {
    this.#dependencies.metrics?.watchRestarted(this.#options.type.plural, reason);
  }

  #retryDelay(): number {
    return backoffDelay(BACKOFF, this.#failures, this.#dependencies.random);
  }

  #scope(): Pick<ReflectorOptions<T, P>, 'namespace' | 'labelSelector' | 'fieldSelector' | 'pageSize'> {
    const { namespace, labelSelector, fieldSelector, pageSize } = this.#options;
    return {
      ...(namespace === undefined ? {} : { namespace }),
      ...(labelSelector === undefined ? {} : { labelSelector }),
      ...(fieldSelector === undefined ? {} : { fieldSelector }),
      ...(pageSize === undefined ? {} : { pageSize }),
    };
  }
}

/** Aborts its signal when it was not fed for a while, or when the parent aborts. */
class Watchdog {
  readonly #controller = new AbortController();
  readonly #clock: Clock;
  readonly #limitMs: number;
  readonly #parent: AbortSignal;
  #fedAt: number;
  #barked = false;
  #cancel: () => void;

  constructor(clock: Clock, limitMs: number, parent: AbortSignal) {
    this.#clock = clock;
    this.#limitMs = limitMs;
    this.#parent = parent;
    this.#fedAt = clock.monotonic();
    this.#cancel = clock.after(limitMs, this.#look);
    parent.addEventListener('abort', this.#onParentAbort, { once: true });
  }

  get signal(): AbortSignal {
    return this.#controller.signal;
  }

  /** It was the watchdog that aborted. */
  get barked(): boolean {
    return this.#barked;
  }

  /** Costs one reading of the clock: busy watches feed thousands of times a second. */
  feed(): void {
    this.#fedAt = this.#clock.monotonic();
  }

  dispose(): void {
    this.#cancel();
    this.#parent.removeEventListener('abort', this.#onParentAbort);
  }

  readonly #look = (): void => {
    const left = this.#fedAt + this.#limitMs - this.#clock.monotonic();
    if (left > 0) {
      this.#cancel = this.#clock.after(left, this.#look);
      return;
    }
    this.#barked = true;
    this.#controller.abort();
  };

  readonly #onParentAbort = (): void => this.#controller.abort();
}
