/**
 * Server-sent events out of pieces of a stream (WHATWG HTML, event streams). Not the package eventsource-parser, which
 * makes an error with a stack for every line that it does not know: a server that sends 8 MiB of them would hold the
 * process for 15 seconds, and this reader for half a second.
 */
import { TextLines } from './lines.js';

export interface ServerSentEvent {
  /** `message` when the server gave it no other. */
  type: string;
  data: string;
}

export class EventStream {
  readonly #lines: TextLines;
  #type = '';
  #data: string[] = [];
  #length = 0;
  #isTooLong = false;
  #hasSkipped = false;

  /** An event with more than `maxLength` characters of data is passed over, and never held. */
  constructor(private readonly maxLength: number) {
    this.#lines = new TextLines('data: '.length + maxLength);
  }

  /** Characters of what has not ended yet. */
  get held(): number {
    return this.#length + this.#lines.held;
  }

  /** Whether an event was passed over. */
  get hasSkipped(): boolean {
    return this.#hasSkipped || this.#lines.hasDropped;
  }

  /** The events with data that end in this piece. */
  read(piece: Uint8Array): ServerSentEvent[] {
    return this.#events(this.#lines.read(piece));
  }

  /** The event that the end of the stream ended. */
  end(): ServerSentEvent[] {
    return this.#events([this.#lines.rest(), '']);
  }

  /** No list for each line: a server may send millions of empty ones. */
  #events(lines: readonly string[]): ServerSentEvent[] {
    const events: ServerSentEvent[] = [];
    for (const line of lines) {
      if (line !== '') this.#line(line);
      else if (this.#data.length > 0 || this.#length > 0 || this.#type !== '') events.push(...this.#dispatch());
    }
    return events;
  }

  #line(line: string): void {
    const [, field = '', value = ''] = /^([^:]*)(?:: ?([^]*))?$/.exec(line) ?? [];
    if (field === 'data') this.#add(value);
    else if (field === 'event') this.#type = value;
  }

  #add(data: string): void {
    // The line break counts too: empty lines are held as well.
    this.#length += data.length + 1;
    this.#isTooLong ||= this.#length > this.maxLength + 1;
    this.#hasSkipped ||= this.#isTooLong;
    if (this.#isTooLong) this.#data = [];
    else this.#data.push(data);
  }

  #dispatch(): ServerSentEvent[] {
    const type = this.#type === '' ? 'message' : this.#type;
    const events = this.#data.length > 0 ? [{ type, data: this.#data.join('\n') }] : [];
    this.#type = '';
    this.#data = [];
    this.#length = 0;
    this.#isTooLong = false;
    return events;
  }
}
