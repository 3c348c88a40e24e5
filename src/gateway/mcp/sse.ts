/** Messages of a stream of server-sent events, piece by piece (WHATWG HTML, event streams). */
import { StreamLines } from '../stream-lines.js';

export class SseMessages {
  readonly #lines = new StreamLines();
  #data: string[] = [];
  #isMessage = true;

  /** The data of each event that ends in this piece; events with a name of their own are passed over. */
  read(piece: Uint8Array): string[] {
    return this.#lines.read(piece).flatMap((line) => this.#line(line));
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
