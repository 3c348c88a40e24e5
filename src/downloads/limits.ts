/** How much of a Box is downloaded through one API pod: calls a second, and files in memory at once. */
import type { Clock } from '../runtime/clock.js';
import { RecentMap } from '../runtime/recent-map.js';
import { TokenBucket } from '../runtime/token-bucket.js';

/** Files of at most 1 MiB: 10 MiB a second of one Box. */
const RATE = { burst: 60, perSecond: 10 };
/** Each holds a file until it is sent. */
export const MAX_OPEN_OF_BOX = 8;
export const MAX_OPEN = 32;
/** A bucket that nobody used for so long is full again. */
const KEEP_MS = 60_000;
const MAX_BOXES = 10_000;

export class DownloadLimits {
  readonly #buckets: RecentMap<TokenBucket>;
  readonly #open = new Map<string, number>();
  #all = 0;

  constructor(private readonly clock: Clock) {
    this.#buckets = new RecentMap({ clock, keepMs: KEEP_MS, maxSize: MAX_BOXES });
  }

  /** Ends the download; undefined when it must not begin now. */
  begin(box: string): (() => void) | undefined {
    const open = this.#open.get(box) ?? 0;
    if (open >= MAX_OPEN_OF_BOX || this.#all >= MAX_OPEN || !this.#bucketOf(box).take()) return undefined;
    this.#open.set(box, open + 1);
    this.#all += 1;
    let isOver = false;
    return () => {
      if (isOver) return;
      isOver = true;
      const left = (this.#open.get(box) ?? 1) - 1;
      if (left === 0) this.#open.delete(box);
      else this.#open.set(box, left);
      this.#all -= 1;
    };
  }

  #bucketOf(box: string): TokenBucket {
    const known = this.#buckets.get(box);
    if (known !== undefined) return known;
    const bucket = new TokenBucket(this.clock, RATE);
    this.#buckets.set(box, bucket);
    return bucket;
  }
}
