/** Lines of streams that come in pieces: each piece is looked at once, however long a line grows and however small it is. */

/** Lines of text in UTF-8, as HTTP sends them. */
export class TextLines {
  readonly #decoder = new TextDecoder();
  /** Of the line that has not ended; joined when it does. */
  #parts: string[] = [];
  #length = 0;
  #afterReturn = false;
  #hasDropped = false;

  /** What has grown beyond `maxLength` characters is dropped. */
  constructor(private readonly maxLength = Infinity) {}

  /** Characters of the line that has not ended. */
  get held(): number {
    return this.#length;
  }

  /** Whether anything was dropped. */
  get hasDropped(): boolean {
    return this.#hasDropped;
  }

  /** The lines that end in this piece, at a line feed, a return or both. */
  read(piece: Uint8Array): string[] {
    const decoded = this.#decoder.decode(piece, { stream: true });
    if (decoded === '') return [];
    // The second half of a line break whose first half ended the piece before.
    const text = this.#afterReturn && decoded.startsWith('\n') ? decoded.slice(1) : decoded;
    this.#afterReturn = decoded.endsWith('\r');
    const [first = '', ...more] = text.split(/\r\n|\n|\r/);
    const last = more.pop();
    if (last === undefined) {
      this.#keep(first);
      return [];
    }
    const lines = [this.rest() + first, ...more];
    this.#keep(last);
    return lines;
  }

  /** What came after the last line break; it is handed out once. */
  rest(): string {
    const rest = this.#parts.join('');
    this.#parts = [];
    this.#length = 0;
    return rest;
  }

  #keep(part: string): void {
    this.#parts.push(part);
    this.#length += part.length;
    if (this.#length <= this.maxLength) return;
    this.#hasDropped = true;
    this.rest();
  }
}

/** Lines of bytes, as programs print them: only a line feed ends one, and of a long one the beginning is held. */
export class ByteLines {
  readonly #maxBytes: number;
  #held: Buffer[] = [];
  #bytes = 0;

  /** A line is cut to `maxBytes`. */
  constructor(maxBytes: number) {
    this.#maxBytes = maxBytes;
  }

  /** The lines that end in this piece, without their ends. */
  read(piece: Buffer): Buffer[] {
    const lines: Buffer[] = [];
    let start = 0;
    for (let end = piece.indexOf(10); end !== -1; end = piece.indexOf(10, start)) {
      this.#hold(piece.subarray(start, end));
      lines.push(Buffer.concat(this.#held));
      this.#held = [];
      this.#bytes = 0;
      start = end + 1;
    }
    this.#hold(piece.subarray(start));
    return lines;
  }

  #hold(part: Buffer): void {
    const held = part.subarray(0, this.#maxBytes - this.#bytes);
    if (held.length === 0) return;
    this.#held.push(held);
    this.#bytes += held.length;
  }
}
