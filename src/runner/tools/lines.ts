/** Splits bytes into lines and holds no more than the beginning of each. */
export class LineSplitter {
  readonly #onLine: (line: Buffer) => void;
  readonly #maxBytes: number;
  #held: Buffer[] = [];
  #bytes = 0;

  /** `onLine` gets every line without its end, cut to `maxBytes`. */
  constructor(onLine: (line: Buffer) => void, maxBytes: number) {
    this.#onLine = onLine;
    this.#maxBytes = maxBytes;
  }

  add(chunk: Buffer): void {
    let start = 0;
    for (let end = chunk.indexOf(10); end !== -1; end = chunk.indexOf(10, start)) {
      this.#hold(chunk.subarray(start, end));
      const line = Buffer.concat(this.#held);
      this.#held = [];
      this.#bytes = 0;
      this.#onLine(line);
      start = end + 1;
    }
    this.#hold(chunk.subarray(start));
  }

  #hold(part: Buffer): void {
    const kept = part.subarray(0, this.#maxBytes - this.#bytes);
    if (kept.length === 0) return;
    this.#held.push(kept);
    this.#bytes += kept.length;
  }
}
