/** Single objects by name, each read at most once in a while: nothing of them is watched or listed. */
import type { KubeObject, ResourceType } from '../api/meta.js';
import { objectKey } from '../api/meta.js';
import { orUndefined } from './errors.js';
import type { KubeApi, ObjectRef } from './types.js';
import type { Clock } from '../runtime/clock.js';

const TTL_MS = 30_000;

export class CachedReads<T extends KubeObject> {
  readonly #known = new Map<string, { at: number; value: Promise<T | undefined> }>();

  constructor(
    private readonly api: Pick<KubeApi, 'get'>,
    private readonly type: ResourceType<T>,
    private readonly clock: Pick<Clock, 'monotonic'>,
  ) {}

  /** The object as it was within the last 30 seconds, undefined when it is not there. */
  get(ref: ObjectRef): Promise<T | undefined> {
    const key = objectKey(ref);
    const now = this.clock.monotonic();
    const known = this.#known.get(key);
    if (known !== undefined && now - known.at < TTL_MS) return known.value;
    for (const [other, { at }] of this.#known) if (now - at >= TTL_MS) this.#known.delete(other);
    const value = this.#read(ref);
    this.#known.set(key, { at: now, value });
    // A failure is not cached: the next call asks again.
    value.catch(() => this.forget(ref));
    return value;
  }

  /** The next get reads again. */
  forget(ref: ObjectRef): void {
    this.#known.delete(objectKey(ref));
  }

  async #read(ref: ObjectRef): Promise<T | undefined> {
    return await orUndefined(this.api.get(this.type, ref));
  }
}
