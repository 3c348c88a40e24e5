/**
 * Which versions of a run this process has replaced by writes of its own. The answer to a write and the watch event of it
 * come on different connections: a look between the two would decide on what is no longer so, and send the same write again.
 */
import { objectKey } from '../../api/meta.js';
import type { ObjectMeta } from '../../api/meta.js';

type Version = Pick<ObjectMeta, 'namespace' | 'name' | 'resourceVersion'>;

export class OwnWrites {
  /** Key of a run -> the versions that writes replaced since the cache last showed another one. */
  readonly #replaced = new Map<string, Set<string>>();

  /** A write that was made on version `before` had the answer `after`. */
  noted(before: Version, after: Version): void {
    const { resourceVersion } = before;
    // A write that changes nothing leaves the version as it was, and no watch event will come.
    if (resourceVersion === undefined || resourceVersion === after.resourceVersion) return;
    const key = objectKey(before);
    const versions = this.#replaced.get(key) ?? new Set();
    this.#replaced.set(key, versions.add(resourceVersion));
  }

  /** Whether the cache does not show a write yet that this process has made; the event of it is on its way. */
  hasReplaced(cached: Version): boolean {
    const key = objectKey(cached);
    if (this.#replaced.get(key)?.has(cached.resourceVersion ?? '') === true) return true;
    this.#replaced.delete(key);
    return false;
  }

  /** The run is gone. */
  forget(key: string): void {
    this.#replaced.delete(key);
  }
}
