/**
 * Wrong API keys, counted by the address of the caller. They leave lines in the log, but not as many as somebody likes, and
 * after some in a minute the answer comes late. A right key is never held up: callers behind one proxy may share an address.
 */
import type { Logger } from '../observability/logger.js';
import type { Clock } from '../runtime/clock.js';

const WINDOW_MS = 60_000;
/** Wrong keys of an address in a minute that are logged and answered at once. */
export const FREE_TRIES = 20;
/** How long the answer to more of them takes. */
export const DELAY_MS = 2_000;
/** Addresses that are remembered; the one that began first is forgotten. */
export const MAX_ADDRESSES = 10_000;
/** Answers that may be late at once; more than these are answered at once, and their connections closed. */
export const MAX_LATE = 256;

interface Tries {
  since: number;
  count: number;
}

export interface WrongKeysDeps {
  clock: Clock;
  log: Logger;
}

export class WrongKeys {
  readonly #deps: WrongKeysDeps;
  readonly #tries = new Map<string, Tries>();
  #late = 0;

  constructor(deps: WrongKeysDeps) {
    this.#deps = deps;
  }

  /** Calls `reply` once, now or later. `close` asks it to end the connection. */
  tried(address: string, reply: (close: boolean) => void): void {
    const { count } = this.#count(address);
    if (count <= FREE_TRIES) {
      const more = count === FREE_TRIES ? { throttled: true } : {};
      this.#deps.log.info({ audit: true, outcome: 'wrong_key', address, ...more }, 'wrong API key');
      return reply(false);
    }
    if (this.#late >= MAX_LATE) return reply(true);
    this.#late += 1;
    this.#deps.clock.after(DELAY_MS, () => {
      this.#late -= 1;
      reply(false);
    });
  }

  #count(address: string): Tries {
    const now = this.#deps.clock.monotonic();
    let tries = this.#tries.get(address);
    if (tries === undefined || now - tries.since >= WINDOW_MS) {
      tries = { since: now, count: 0 };
      this.#tries.delete(address);
      this.#tries.set(address, tries);
    }
    tries.count += 1;
    const [oldest] = this.#tries.keys();
    if (this.#tries.size > MAX_ADDRESSES && oldest !== undefined) this.#tries.delete(oldest);
    return tries;
  }
}
