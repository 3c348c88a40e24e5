/**
 * What all bodies that are on their way into a process may hold together. When it is used up, somebody goes: of the
 * address that holds most, the body that has come no further for longest. Behind a proxy all senders have one address, and
 * then it is the slowest of all. Needs no clock: the order of steps tells who is slow.
 */

/** What a body counts before anything of it has come: its connection has buffers too. */
export const BODY_BASE_BYTES = 16 * 1024;
/** A body has come further once it has so many bytes more: a byte now and then is no progress. */
export const STEP_BYTES = 64 * 1024;

/** The part of one body. */
export interface BodyShare {
  /** The body holds so many bytes now. May cut this body. */
  holds(bytes: number): void;
  /** Nothing is held any more. */
  release(): void;
}

interface Held {
  bytes: number;
  address: string;
  cut: () => void;
}

export class BodyBudget {
  readonly #maxBytes: number;
  /** The bodies of an address, the slowest first. */
  readonly #bodies = new Map<string, Set<Held>>();
  readonly #bytesOf = new Map<string, number>();
  #bytes = 0;

  constructor(maxBytes: number) {
    this.#maxBytes = maxBytes;
  }

  /** What all bodies hold. */
  get bytes(): number {
    return this.#bytes;
  }

  /** A body begins. `cut` is called at most once, when it has to go; nothing of it counts then. */
  open(address: string, cut: () => void): BodyShare {
    const held: Held = { bytes: 0, address, cut };
    this.#bodiesOf(address).add(held);
    this.#count(held, BODY_BASE_BYTES);
    this.#makeRoom();
    return {
      holds: (bytes) => {
        const bodies = this.#bodies.get(address);
        if (bodies?.has(held) !== true) return;
        const now = BODY_BASE_BYTES + bytes;
        if (Math.floor(now / STEP_BYTES) > Math.floor(held.bytes / STEP_BYTES)) {
          bodies.delete(held);
          bodies.add(held);
        }
        this.#count(held, now);
        this.#makeRoom();
      },
      release: () => this.#remove(held),
    };
  }

  #bodiesOf(address: string): Set<Held> {
    const known = this.#bodies.get(address) ?? new Set();
    this.#bodies.set(address, known);
    return known;
  }

  #count(held: Held, bytes: number): void {
    const more = bytes - held.bytes;
    held.bytes = bytes;
    this.#bytes += more;
    this.#bytesOf.set(held.address, (this.#bytesOf.get(held.address) ?? 0) + more);
  }

  #remove(held: Held): void {
    const bodies = this.#bodies.get(held.address);
    if (bodies?.delete(held) !== true) return;
    this.#count(held, 0);
    if (bodies.size > 0) return;
    this.#bodies.delete(held.address);
    this.#bytesOf.delete(held.address);
  }

  #makeRoom(): void {
    while (this.#bytes > this.#maxBytes) {
      const slowest = this.#slowestOfLargest();
      if (slowest === undefined) return;
      this.#remove(slowest);
      slowest.cut();
    }
  }

  #slowestOfLargest(): Held | undefined {
    let largest: string | undefined;
    let most = 0;
    for (const [address, bytes] of this.#bytesOf) {
      if (bytes <= most) continue;
      largest = address;
      most = bytes;
    }
    const [slowest] = largest === undefined ? [] : (this.#bodies.get(largest) ?? []);
    return slowest;
  }
}
