/** Messages of a stream of server-sent events, piece by piece (WHATWG HTML, event streams). */

export class SseMessages {
  readonly #decoder = new TextDecoder();
  #rest = '';
  #data: string[] = [];
  #isMessage = true;

  /** The data of each event that ends in this piece; events with a name of their own are passed over. */
  read(piece: Uint8Array): string[] {
    this.#rest += this.#decoder.decode(piece, { stream: true });
    // A return at the end may be the first half of a line break.
    const whole = this.#rest.endsWith('\r') ? this.#rest.slice(0, -1) : this.#rest;
    const lines = whole.split(/\r\n|\n|\r/);
    const last = lines.pop() ?? '';
    this.#rest = `${last}${this.#rest.slice(whole.length)}`;
    return lines.flatMap((line) => this.#line(line));
  }

  #line(line: string): string[] {
    if (line === '') return this.#end();
    const [, field = '', value = ''] = /^([^:]*)(?:: ?([^]*))?$/.exec(line) ?? [];
    if (field === 'data') this.#data.push(value);
    else if (field === 'event') this.#isMessage = value === 'message' || value === '';
    return [];
  }

  #end(): string[] {
    const events = this.#data.length > 0 && this.#isMessage ? [this.#data.join('\n')] : [];
    this.#data = [];
    this.#isMessage = true;
    return events;
  }
}
