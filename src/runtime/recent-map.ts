/** A map that forgets what was not used for a while, and beyond its size what was not used for longest. */
import type { Clock } from './clock.js';

export interface RecentMapOptions {
  clock: Clock;
  keepMs: number;
  maxSize: number;
}

export class RecentMap<V> {
  /** In the order of their last use. */
  readonly #entries = new Map<string, { value: V; usedAt: number }>();

  constructor(private readonly options: RecentMapOptions) {}

  /** The value, which counts as a use. */
  get(key: string): V | undefined {
    this.#forgetOld();
    const entry = this.#entries.get(key);
    if (entry !== undefined) this.set(key, entry.value);
    return entry?.value;
  }

  set(key: string, value: V): void {
    this.#entries.delete(key);
    this.#entries.set(key, { value, usedAt: this.options.clock.monotonic() });
    this.#forgetOld();
  }

  #forgetOld(): void {
    const { clock, keepMs, maxSize } = this.options;
    const oldest = clock.monotonic() - keepMs;
    for (const [key, { usedAt }] of this.#entries) {
      if (usedAt > oldest && this.#entries.size <= maxSize) return;
      this.#entries.delete(key);
    }
  }
}
