/** The JSON of server-sent events of a model. What does not fit the form is passed over. */
import { EventStream, type ServerSentEvent } from '../../net/event-stream.js';
import { parseJsonText } from '../../protocol/json-limits.js';
import type { StreamEvent } from './dialect.js';

export class StreamEvents {
  readonly #events: EventStream;

  /** `maxBytes` of one event: some servers send all of an answer in one. */
  constructor(maxBytes: number) {
    this.#events = new EventStream(maxBytes);
  }

  /** Whether an event was too long to be read: what it said is missing. */
  get hasSkipped(): boolean {
    return this.#events.hasSkipped;
  }

  /** The events that end in this piece. */
  read(piece: Uint8Array): StreamEvent[] {
    return this.#events.read(piece).flatMap(eventIn);
  }

  /** The event that the end of the stream ended. */
  end(): StreamEvent[] {
    return this.#events.end().flatMap(eventIn);
  }
}

function eventIn({ data }: ServerSentEvent): StreamEvent[] {
  const text = data.trim();
  if (text === '[DONE]') return ['[DONE]'];
  try {
    const parsed: unknown = parseJsonText(text);
    return typeof parsed === 'object' && parsed !== null ? [parsed as Record<string, unknown>] : [];
  } catch {
    return [];
  }
}
