/** First in, first out within a group; groups take turns. Everything in constant time. */
import { Fifo } from './fifo.js';

export class FairFifo {
  /** Only groups with items. */
  readonly #groups = new Map<string, Fifo<string>>();
  /** Each of these groups once, the next one first. */
  readonly #turns = new Fifo<string>();
  #length = 0;

  constructor(private readonly groupOf: (item: string) => string) {}

  get length(): number {
    return this.#length;
  }

  push(item: string): void {
    const name = this.groupOf(item);
    const group = this.#groups.get(name) ?? new Fifo<string>();
    if (group.length === 0) {
      this.#groups.set(name, group);
      this.#turns.push(name);
    }
    group.push(item);
    this.#length += 1;
  }

  shift(): string | undefined {
    const name = this.#turns.shift();
    const group = name === undefined ? undefined : this.#groups.get(name);
    if (name === undefined || group === undefined) return undefined;
    const item = group.shift();
    if (group.length === 0) this.#groups.delete(name);
    else this.#turns.push(name);
    this.#length -= 1;
    return item;
  }

  clear(): void {
    this.#groups.clear();
    this.#turns.clear();
    this.#length = 0;
  }
}
