/**
 * What the rest of the code base sees of Kubernetes. Implementations stand beside this file; consumers declare
 * narrower interfaces where they use less.
 */
import type { KubeObject, ResourceType } from '../api/meta.js';

export interface ObjectRef {
  namespace?: string;
  name: string;
}

export interface CallOptions {
  signal?: AbortSignal;
}

export interface GetOptions extends CallOptions {
  /** Only `metadata` is sent; nothing else may be read. For large objects that are only identified. */
  metadataOnly?: boolean;
}

export interface ListOptions extends CallOptions {
  namespace?: string;
  labelSelector?: string;
  fieldSelector?: string;
  /** Objects of one page; 500 when absent. Fewer for kinds with large objects, since a page is in memory as a whole. */
  pageSize?: number;
  /** Only `metadata` of each object is sent; nothing else of an item may be read. For large objects that are only counted or removed. */
  metadataOnly?: boolean;
}

export interface DeleteOptions extends CallOptions {
  /** Preconditions: 409 when the object is another one or has changed. */
  uid?: string;
  resourceVersion?: string;
  propagationPolicy?: 'Background' | 'Foreground' | 'Orphan';
  gracePeriodSeconds?: number;
}

export interface PatchOptions extends CallOptions {
  /** merge = RFC 7386, json = RFC 6902, apply = server-side apply. */
  type: 'merge' | 'json' | 'apply';
  subresource?: 'status';
  /** Needed for apply; forces ownership of the fields in the body. */
  fieldManager?: string;
}

/** An object on its way to the API server: no uid, no resourceVersion needed. */
export type NewObject<T extends KubeObject> = T;

/**
 * A typed client for the Kubernetes API. Every call rejects with a {@link KubeApiError} from errors.ts for an answer
 * that is not 2xx, and with a `KubeConnectionError` when there was no answer. 429 and 503 with Retry-After are retried
 * inside for a bounded time; nothing else is.
 */
export interface KubeApi {
  get<T extends KubeObject>(type: ResourceType<T>, ref: ObjectRef, options?: GetOptions): Promise<T>;
  /** All pages. */
  list<T extends KubeObject>(
    type: ResourceType<T>,
    options?: ListOptions,
  ): Promise<{ items: T[]; resourceVersion: string }>;
  create<T extends KubeObject>(type: ResourceType<T>, object: NewObject<T>, options?: CallOptions): Promise<T>;
  /** PUT; the object's resourceVersion is the precondition. */
  replace<T extends KubeObject>(type: ResourceType<T>, object: T, options?: CallOptions): Promise<T>;
  patch<T extends KubeObject>(type: ResourceType<T>, ref: ObjectRef, body: unknown, options: PatchOptions): Promise<T>;
  /** Resolves also when the object is only marked for deletion; 404 rejects like any other error. */
  delete<T extends KubeObject>(type: ResourceType<T>, ref: ObjectRef, options?: DeleteOptions): Promise<void>;
}

/** A change of one cached object. `current` is absent for a deletion, `previous` for an addition. */
export interface CacheChange<P> {
  key: string;
  previous?: P;
  current?: P;
}

/**
 * A read-only view of the informer's store: projections of objects by key (`namespace/name` or `name`) and by named
 * index. Objects are frozen in tests and must never be changed.
 */
export interface Cache<P> {
  get(key: string): P | undefined;
  values(): IterableIterator<P>;
  /** Objects whose index function returned `value`; order is not defined. */
  byIndex(index: string, value: string): readonly P[];
  readonly size: number;
  /** How often something changed so far: as long as it is the same number, the contents are the same. */
  readonly changes: number;
  /** Called after the store changed, in order. A listener must not throw; it should only enqueue. Returns unsubscribe. */
  onChange(listener: (change: CacheChange<P>) => void): () => void;
}

/** A running list+watch that fills a {@link Cache}. */
export interface Informer<P> extends Cache<P> {
  /** Resolves after the first full list. */
  readonly synced: Promise<void>;
  /** False while the watch has been silent for too long or the list has not been read: the readiness probe fails. */
  isHealthy(): boolean;
  /** Resolves true when the watch position is at or past `resourceVersion`, false when the signal fires first. */
  waitForResourceVersion(resourceVersion: string, signal: AbortSignal): Promise<boolean>;
  start(): void;
  stop(): Promise<void>;
}

/** How an informer projects and indexes objects. */
export interface InformerOptions<T extends KubeObject, P> {
  type: ResourceType<T>;
  namespace?: string;
  labelSelector?: string;
  fieldSelector?: string;
  /** As in {@link ListOptions}. */
  pageSize?: number;
  /** Keep only what is needed: memory is per projection (drop managedFields and payloads). */
  project: (object: T) => P;
  /** Name of an index -> values of an object. */
  indexes?: Record<string, (projected: P) => readonly string[]>;
}

/** Makes an informer that is not started yet. */
export type InformerFactory = <T extends KubeObject, P>(options: InformerOptions<T, P>) => Informer<P>;
