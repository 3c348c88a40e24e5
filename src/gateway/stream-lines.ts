/** Lines of a stream of text, piece by piece: each piece is looked at once, however long a line grows. */
export class StreamLines {
  readonly #decoder = new TextDecoder();
  /** Of the line that has not ended; joined when it does. */
  #parts: string[] = [];
  #length = 0;
  #afterReturn = false;

  /** What has grown beyond `maxLength` characters is dropped. */
  constructor(private readonly maxLength = Infinity) {}

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
    if (this.#length > this.maxLength) this.rest();
  }
}
