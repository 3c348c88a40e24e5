/**
 * A KubeApi in memory for reconcile tests. It keeps to the rules of the real one that controllers rely on:
 * resourceVersion and UID preconditions, generation, status as a subresource, finalizers and deletionTimestamp (the
 * integration test kube-recording-api compares the two). It validates nothing, knows no generateName and collects no
 * garbage: what needs the real rules is an integration test.
 */
import type { KubeObject, ResourceType } from '../../src/api/meta.js';
import { objectKey } from '../../src/api/meta.js';
import { ObjectCache } from '../../src/kube/cache.js';
import { KubeApiError } from '../../src/kube/errors.js';
import { apiVersionOf } from '../../src/kube/owner-references.js';
import type {
  CallOptions,
  DeleteOptions,
  GetOptions,
  Informer,
  InformerOptions,
  KubeApi,
  ListOptions,
  ObjectRef,
  PatchOptions,
} from '../../src/kube/types.js';
import type { Clock } from '../../src/runtime/clock.js';
import { FakeClock } from './fake-clock.js';
import { applyJsonPatch, applyMergePatch, matchesFields, matchesLabels } from './recording-api-rules.js';

export type RecordedVerb = 'get' | 'list' | 'create' | 'replace' | 'patch' | 'delete';

export interface RecordedCall {
  verb: RecordedVerb;
  /** Plural of the kind; with `/status` for patches of the status. */
  resource: string;
  /** `namespace/name` or `name`; the namespace or '' for a list. */
  key: string;
  /** The object or patch that was sent, or the options of a delete (without the signal). */
  body?: unknown;
}

export interface Failure {
  verb: RecordedVerb;
  /** Plural of the kind; absent = any. */
  resource?: string;
  /** `namespace/name` or `name`; absent = any. */
  key?: string;
  error: Error;
  /** How many matching calls fail; default 1. */
  times?: number;
  /** The write happens, and then the answer is lost. */
  afterWrite?: boolean;
}

interface StoredObject extends KubeObject {
  spec?: unknown;
  status?: unknown;
}

interface Follower {
  resource: string;
  changed(object: StoredObject): void;
  removed(object: StoredObject): void;
}

/** An answer as the API server gives it: `apiError(404, 'NotFound')`. */
export function apiError(status: number, reason: string, message = 'injected by the test'): KubeApiError {
  return new KubeApiError({ status, reason, message });
}

export class RecordingApi implements KubeApi {
  /** Every write in order, the failed ones too. */
  readonly writes: RecordedCall[] = [];
  /** Every get and list in order. */
  readonly reads: RecordedCall[] = [];
  readonly #objects = new Map<string, StoredObject>();
  readonly #clock: Clock;
  readonly #failures: Failure[] = [];
  readonly #followers: Follower[] = [];
  /** Plural of a kind -> changes that informers have not been told. */
  readonly #delayed = new Map<string, (() => void)[]>();
  #version = 1000;
  #uids = 0;

  constructor(options: { clock?: Clock } = {}) {
    this.#clock = options.clock ?? new FakeClock();
  }

  /** Puts an object there as it is (status included) without recording it; fills in uid, version and times. */
  seed<T extends KubeObject>(type: ResourceType<T>, object: T): T {
    const stored = this.#put(type, this.#complete(type, structuredClone(object)));
    return structuredClone(stored) as unknown as T;
  }

  /** Reads an object without recording it. */
  peek<T extends KubeObject>(type: ResourceType<T>, key: string): T | undefined {
    const stored = this.#objects.get(storeKey(type, key));
    return stored === undefined ? undefined : (structuredClone(stored) as unknown as T);
  }

  /** All objects of a kind without recording, in order of creation. */
  all<T extends KubeObject>(type: ResourceType<T>): T[] {
    return this.#ofType(type).map((object) => structuredClone(object) as unknown as T);
  }

  /** Takes an object away without recording it, whatever its finalizers. */
  vanish(type: ResourceType, key: string): void {
    const stored = this.#objects.get(storeKey(type, key));
    if (stored !== undefined) this.#remove(type, stored);
  }

  /** Makes the next matching calls fail. */
  failNext(failure: Failure): void {
    this.#failures.push({ ...failure });
  }

  /** Forgets what was recorded so far, so that a test can assert what came after. */
  clearRecords(): void {
    this.writes.length = 0;
    this.reads.length = 0;
  }

  /** Informers learn of changes of this kind only when the returned function is called, as from a slow watch. */
  delayWatch(type: ResourceType): () => void {
    const delayed: (() => void)[] = [];
    this.#delayed.set(type.plural, delayed);
    return () => {
      this.#delayed.delete(type.plural);
      for (const tell of delayed) tell();
    };
  }

  /** An informer that follows this store at once, but for {@link delayWatch}; its objects are frozen. */
  informer<T extends KubeObject, P>(options: InformerOptions<T, P>): Informer<P> {
    const cache = new ObjectCache<P>({
      ...(options.indexes === undefined ? {} : { indexes: options.indexes }),
      onListenerError: (error) => {
        throw error;
      },
    });
    const follower: Follower = {
      resource: options.type.plural,
      changed: (object) => {
        if (selected(object, options)) {
          cache.set(objectKey(object.metadata), deepFreeze(options.project(structuredClone(object) as unknown as T)));
        } else cache.delete(objectKey(object.metadata));
      },
      removed: (object) => cache.delete(objectKey(object.metadata)),
    };
    for (const object of this.#ofType(options.type)) follower.changed(object);
    this.#followers.push(follower);
    return Object.assign(cache, {
      synced: Promise.resolve(),
      isHealthy: () => true,
      waitForResourceVersion: () => Promise.resolve(true),
      start: () => undefined,
      stop: () => Promise.resolve(),
    });
  }

  async get<T extends KubeObject>(type: ResourceType<T>, ref: ObjectRef, options: GetOptions = {}): Promise<T> {
    const key = objectKey(ref);
    this.reads.push({ verb: 'get', resource: type.plural, key });
    await this.#failOrGoOn('get', type.plural, key, options.signal);
    const found = this.#existing(type, key);
    return structuredClone(options.metadataOnly === true ? metadataOf(found) : found) as unknown as T;
  }

  async list<T extends KubeObject>(
    type: ResourceType<T>,
    options: ListOptions = {},
  ): Promise<{ items: T[]; resourceVersion: string }> {
    this.reads.push({ verb: 'list', resource: type.plural, key: options.namespace ?? '' });
    await this.#failOrGoOn('list', type.plural, options.namespace ?? '', options.signal);
    const found = this.#ofType(type).filter((object) => selected(object, options));
    const items = options.metadataOnly === true ? found.map(metadataOf) : found;
    return { items: structuredClone(items) as unknown as T[], resourceVersion: String(this.#version) };
  }

  async create<T extends KubeObject>(type: ResourceType<T>, object: T, options?: CallOptions): Promise<T> {
    const key = objectKey(object.metadata);
    return this.#write({ verb: 'create', resource: type.plural, key, body: object }, options?.signal, () => {
      if (this.#objects.has(storeKey(type, key))) {
        throw apiError(409, 'AlreadyExists', `${type.plural} "${object.metadata.name}" already exists`);
      }
      const { status: _status, ...rest } = structuredClone(object) as StoredObject;
      const { uid: _uid, resourceVersion: _version, generation: _generation, ...metadata } = rest.metadata;
      return this.#put(type, this.#complete(type, { ...rest, metadata }));
    });
  }

  async replace<T extends KubeObject>(type: ResourceType<T>, object: T, options?: CallOptions): Promise<T> {
    const key = objectKey(object.metadata);
    return this.#write({ verb: 'replace', resource: type.plural, key, body: object }, options?.signal, () => {
      const known = this.#expectVersion(type, key, object.metadata);
      return this.#update(type, known, structuredClone(object));
    });
  }

  async patch<T extends KubeObject>(
    type: ResourceType<T>,
    ref: ObjectRef,
    body: unknown,
    options: PatchOptions,
  ): Promise<T> {
    const key = objectKey(ref);
    const resource = options.subresource === undefined ? type.plural : `${type.plural}/${options.subresource}`;
    return this.#write({ verb: 'patch', resource, key, body }, options.signal, () => {
      const known = this.#objects.get(storeKey(type, key));
      if (known === undefined && options.type === 'apply') {
        return this.#put(type, this.#complete(type, structuredClone(body) as StoredObject));
      }
      const existing = this.#existing(type, key);
      const change = options.type === 'json' ? applyJsonPatch : applyMergePatch;
      const changed = change(structuredClone(existing), body) as StoredObject;
      this.#checkPrecondition(type, existing, changed.metadata);
      if (options.subresource === 'status') return this.#updateStatus(type, existing, changed.status);
      return this.#update(type, existing, changed);
    });
  }

  async delete<T extends KubeObject>(
    type: ResourceType<T>,
    ref: ObjectRef,
    options: DeleteOptions = {},
  ): Promise<void> {
    const key = objectKey(ref);
    const { signal, ...body } = options;
    await this.#write({ verb: 'delete', resource: type.plural, key, body }, signal, () => {
      const known = this.#existing(type, key);
      this.#checkPrecondition(type, known, options);
      if ((known.metadata.finalizers ?? []).length === 0) return this.#remove(type, known);
      if (known.metadata.deletionTimestamp !== undefined) return known;
      const deletionTimestamp = this.#time();
      const generation = (known.metadata.generation ?? 1) + 1;
      return this.#put(type, { ...known, metadata: { ...known.metadata, deletionTimestamp, generation } });
    });
  }

  async #write<T extends KubeObject>(
    call: RecordedCall,
    signal: AbortSignal | undefined,
    act: () => StoredObject,
  ): Promise<T> {
    this.writes.push(structuredClone(call));
    const failure = await this.#failOrGoOn(call.verb, call.resource, call.key, signal);
    const stored = act();
    if (failure !== undefined) throw failure.error;
    return structuredClone(stored) as unknown as T;
  }

  /** Throws the injected error; returns a failure that is to happen after the write. */
  async #failOrGoOn(
    verb: RecordedVerb,
    resource: string,
    key: string,
    signal?: AbortSignal,
  ): Promise<Failure | undefined> {
    // The answer never comes in the same turn of the event loop, as with a real server.
    await Promise.resolve();
    signal?.throwIfAborted();
    const failure = this.#failures.find(
      (one) =>
        one.verb === verb &&
        (one.resource === undefined || one.resource === resource) &&
        (one.key === undefined || one.key === key),
    );
    if (failure === undefined) return undefined;
    failure.times = (failure.times ?? 1) - 1;
    if (failure.times <= 0) this.#failures.splice(this.#failures.indexOf(failure), 1);
    if (failure.afterWrite !== true) throw failure.error;
    return failure;
  }

  #ofType(type: ResourceType): StoredObject[] {
    const prefix = storeKey(type, '');
    return [...this.#objects].filter(([key]) => key.startsWith(prefix)).map(([, object]) => object);
  }

  #existing(type: ResourceType, key: string): StoredObject {
    const stored = this.#objects.get(storeKey(type, key));
    if (stored === undefined) throw apiError(404, 'NotFound', `${type.plural} "${key}" not found`);
    return stored;
  }

  #expectVersion(type: ResourceType, key: string, sent: KubeObject['metadata']): StoredObject {
    const known = this.#existing(type, key);
    if (sent.resourceVersion === undefined) {
      throw apiError(422, 'Invalid', 'metadata.resourceVersion: Invalid value: 0x0: must be specified for an update');
    }
    this.#checkPrecondition(type, known, sent);
    return known;
  }

  #checkPrecondition(type: ResourceType, known: StoredObject, sent: { uid?: string; resourceVersion?: string }): void {
    const { uid, resourceVersion } = known.metadata;
    const same =
      (sent.uid === undefined || sent.uid === uid) &&
      (sent.resourceVersion === undefined || sent.resourceVersion === resourceVersion);
    if (!same) {
      throw apiError(409, 'Conflict', `the ${type.kind} has been changed; apply your changes to the latest version`);
    }
  }

  #update(type: ResourceType, known: StoredObject, sent: StoredObject): StoredObject {
    const { uid, creationTimestamp, deletionTimestamp, generation, resourceVersion } = known.metadata;
    const changed = structuredClone(sent);
    delete changed.status;
    if (known.status !== undefined) changed.status = known.status;
    changed.metadata = { ...sent.metadata };
    Object.assign(
      changed.metadata,
      { uid, creationTimestamp, resourceVersion },
      deletionTimestamp === undefined ? {} : { deletionTimestamp },
      { generation: (generation ?? 1) + (sameJson(withoutMeta(changed), withoutMeta(known)) ? 0 : 1) },
    );
    if (sameJson(changed, known)) return known;
    const leaves = deletionTimestamp !== undefined && (changed.metadata.finalizers ?? []).length === 0;
    return leaves ? this.#remove(type, known) : this.#put(type, changed);
  }

  #updateStatus(type: ResourceType, known: StoredObject, status: unknown): StoredObject {
    if (sameJson(known.status, status)) return known;
    return this.#put(type, { ...known, status });
  }

  #put(type: ResourceType, object: StoredObject): StoredObject {
    this.#version += 1;
    const stored = { ...object, metadata: { ...object.metadata, resourceVersion: String(this.#version) } };
    this.#objects.set(storeKey(type, objectKey(stored.metadata)), stored);
    this.#tell(type, (follower) => follower.changed(stored));
    return stored;
  }

  #remove(type: ResourceType, object: StoredObject): StoredObject {
    this.#version += 1;
    this.#objects.delete(storeKey(type, objectKey(object.metadata)));
    this.#tell(type, (follower) => follower.removed(object));
    return object;
  }

  #tell({ plural }: ResourceType, event: (follower: Follower) => void): void {
    const tell = () => {
      for (const follower of this.#followers) if (follower.resource === plural) event(follower);
    };
    const delayed = this.#delayed.get(plural);
    if (delayed === undefined) tell();
    else delayed.push(tell);
  }

  #complete(type: ResourceType, object: StoredObject): StoredObject {
    this.#uids += 1;
    const defaults = {
      uid: `uid-${type.plural}-${this.#uids}`,
      creationTimestamp: this.#time(),
      generation: 1,
    };
    return {
      ...object,
      apiVersion: apiVersionOf(type),
      kind: type.kind,
      metadata: { ...defaults, ...object.metadata },
    };
  }

  /** Kubernetes cuts its times to seconds. */
  #time(): string {
    return new Date(this.#clock.now()).toISOString().replace(/\.\d+Z$/, 'Z');
  }
}

function storeKey(type: ResourceType, key: string): string {
  return `${type.group}/${type.plural}#${key}`;
}

function selected(object: StoredObject, options: Pick<ListOptions, 'namespace' | 'labelSelector' | 'fieldSelector'>) {
  return (
    (options.namespace === undefined || object.metadata.namespace === options.namespace) &&
    matchesLabels(object.metadata.labels ?? {}, options.labelSelector) &&
    matchesFields(object, options.fieldSelector)
  );
}

function metadataOf({ apiVersion, kind, metadata }: StoredObject): StoredObject {
  return { apiVersion, kind, metadata };
}

function withoutMeta(object: StoredObject): unknown {
  const { metadata: _metadata, status: _status, ...rest } = object;
  return rest;
}

function sameJson(a: unknown, b: unknown): boolean {
  return JSON.stringify(sortKeys(a)) === JSON.stringify(sortKeys(b));
}

function sortKeys(value: unknown): unknown {
  if (Array.isArray(value)) return value.map(sortKeys);
  if (value === null || typeof value !== 'object') return value;
  const entries = Object.entries(value).filter(([, inner]) => inner !== undefined);
  return Object.fromEntries(entries.sort(([a], [b]) => (a < b ? -1 : 1)).map(([key, inner]) => [key, sortKeys(inner)]));
}

/** Freezes an object and everything in it. */
export function deepFreeze<T>(value: T): T {
  if (value !== null && typeof value === 'object' && !Object.isFrozen(value)) {
    Object.freeze(value);
    for (const inner of Object.values(value)) deepFreeze(inner);
  }
  return value;
}
