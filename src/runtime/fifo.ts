/** First in, first out, in constant time: Array.shift moves all that follow, which hurts with 100,000 keys. */
export class Fifo<V> {
  #items: V[] = [];
  #head = 0;

  get length(): number {
    return this.#items.length - this.#head;
  }

  push(item: V): void {
    this.#items.push(item);
  }

  shift(): V | undefined {
    if (this.length === 0) return undefined;
    const item = this.#items[this.#head];
    this.#head += 1;
    if (this.#head * 2 > this.#items.length) {
      this.#items = this.#items.slice(this.#head);
      this.#head = 0;
    }
    return item;
  }

  clear(): void {
    this.#items = [];
    this.#head = 0;
  }
}
