/** What has come to a fake server so far, and who waits for so much of it. */
export class Arrivals<T> {
  readonly all: T[] = [];
  readonly #waiting: { count: number; resolve: () => void }[] = [];

  add(one: T): void {
    this.all.push(one);
    for (const { count, resolve } of this.#waiting) if (this.all.length >= count) resolve();
  }

  /** Resolves when so many have come. */
  received(count: number): Promise<void> {
    return new Promise((resolve) => {
      if (this.all.length >= count) resolve();
      else this.#waiting.push({ count, resolve });
    });
  }
}
