/**
 * The store behind an informer: projections by key, with indexes, and listeners that are told of every change. It
 * knows nothing of watches: the informer writes it, tests may write it by hand.
 */
import type { Cache, CacheChange } from './types.js';

interface Entry<P> {
  value: P;
  /** resourceVersion of the object that was projected; tells a relist what did not change. */
  version: string;
}

export interface ObjectCacheOptions<P> {
  /** Name of an index -> values of an object. */
  indexes?: Record<string, (projected: P) => readonly string[]>;
  /** A listener threw. The change is stored and the other listeners are told all the same. */
  onListenerError?: (error: unknown) => void;
}

export class ObjectCache<P> implements Cache<P> {
  readonly #entries = new Map<string, Entry<P>>();
  readonly #indexes = new Map<string, Index<P>>();
  readonly #listeners = new Set<(change: CacheChange<P>) => void>();
  readonly #onListenerError: (error: unknown) => void;
  #changes = 0;

  constructor(options: ObjectCacheOptions<P> = {}) {
    for (const [name, valuesOf] of Object.entries(options.indexes ?? {})) {
      this.#indexes.set(name, new Index(valuesOf));
    }
    this.#onListenerError = options.onListenerError ?? (() => undefined);
  }

  get size(): number {
    return this.#entries.size;
  }

  get changes(): number {
    return this.#changes;
  }

  get(key: string): P | undefined {
    return this.#entries.get(key)?.value;
  }

  *values(): IterableIterator<P> {
    for (const entry of this.#entries.values()) yield entry.value;
  }

  byIndex(index: string, value: string): readonly P[] {
    const found = this.#indexes.get(index);
    if (found === undefined) throw new Error(`there is no index ${index}: name it in the informer's options`);
    const objects: P[] = [];
    for (const key of found.keys(value)) {
      const entry = this.#entries.get(key);
      if (entry !== undefined) objects.push(entry.value);
    }
    return objects;
  }

  onChange(listener: (change: CacheChange<P>) => void): () => void {
    this.#listeners.add(listener);
    return () => this.#listeners.delete(listener);
  }

  /** Adds or replaces one object and tells the listeners. */
  set(key: string, value: P, version = ''): void {
    const previous = this.#entries.get(key)?.value;
    this.#store(key, { value, version });
    this.#tell(previous === undefined ? { key, current: value } : { key, previous, current: value });
  }

  /** Removes one object and tells the listeners; nothing happens when it is not there. */
  delete(key: string): void {
    const previous = this.#entries.get(key)?.value;
    if (previous === undefined) return;
    this.#changes++;
    this.#entries.delete(key);
    for (const index of this.#indexes.values()) index.remove(key, previous);
    this.#tell({ key, previous });
  }

  /** Makes the store equal to a full list: additions, changes and deletions are told, unchanged objects are not. */
  replaceAll(list: ReadonlyMap<string, { value: P; version: string }>): void {
    for (const key of this.#entries.keys()) {
      if (!list.has(key)) this.delete(key);
    }
    for (const [key, entry] of list) {
      const known = this.#entries.get(key);
      if (known !== undefined && known.version === entry.version && entry.version !== '') continue;
      this.set(key, entry.value, entry.version);
    }
  }

  /** Tells the listeners every object again, as an unchanged change: the periodic resync. */
  replay(): void {
    for (const [key, { value }] of this.#entries) this.#tell({ key, previous: value, current: value });
  }

  #store(key: string, entry: Entry<P>): void {
    const previous = this.#entries.get(key)?.value;
    this.#changes++;
    this.#entries.set(key, entry);
    for (const index of this.#indexes.values()) {
      if (previous !== undefined) index.remove(key, previous);
      index.add(key, entry.value);
    }
  }

  #tell(change: CacheChange<P>): void {
    for (const listener of this.#listeners) {
      try {
        listener(change);
      } catch (error) {
        this.#onListenerError(error);
      }
    }
  }
}

const NO_KEYS: ReadonlySet<string> = new Set();

/** value -> keys of one index function. */
class Index<P> {
  readonly #keys = new Map<string, Set<string>>();
  readonly #valuesOf: (projected: P) => readonly string[];

  constructor(valuesOf: (projected: P) => readonly string[]) {
    this.#valuesOf = valuesOf;
  }

  keys(value: string): ReadonlySet<string> {
    return this.#keys.get(value) ?? NO_KEYS;
  }

  add(key: string, object: P): void {
    for (const value of this.#valuesOf(object)) {
      const keys = this.#keys.get(value);
      if (keys === undefined) this.#keys.set(value, new Set([key]));
      else keys.add(key);
    }
  }

  remove(key: string, object: P): void {
    for (const value of this.#valuesOf(object)) {
      const keys = this.#keys.get(value);
      keys?.delete(key);
      if (keys?.size === 0) this.#keys.delete(value);
    }
  }
}
