/**
 * Wrong API keys, counted by the address of the caller. They are logged up to a limit for each minute;
 * beyond it the answer is delayed. A valid key is never delayed: callers behind one proxy may share an address.
 */
import type { Logger } from '../observability/logger.js';
import type { Clock } from '../runtime/clock.js';

const WINDOW_MS = 60_000;
/** Wrong keys of an address in a minute that are logged and answered at once. */
export const FREE_TRIES = 20;
/** Delay of the answers beyond that. */
export const DELAY_MS = 2_000;
/** Addresses that are remembered; the oldest is forgotten first. */
export const MAX_ADDRESSES = 10_000;
/** Answers that may be delayed at the same time; further ones are sent immediately, and their connections closed. */
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
