/** Reads the data of server-sent events out of pieces of a stream. What does not fit the form is passed over. */
import { StreamLines } from '../stream-lines.js';
import type { StreamEvent } from './dialect.js';

/** A longer line is no event that tells usage. */
const MAX_LINE = 4 * 1024 * 1024;

export class SseReader {
  readonly #lines = new StreamLines(MAX_LINE);

  /** The events that end in this piece. */
  read(piece: Uint8Array): StreamEvent[] {
    return this.#lines.read(piece).flatMap(eventIn);
  }

  /** The event of a last line without an end. */
  end(): StreamEvent[] {
    return eventIn(this.#lines.rest());
  }
}

/** Every vendor puts the JSON of an event on one line. */
function eventIn(line: string): StreamEvent[] {
  const text = line.startsWith('data:') ? line.slice('data:'.length).trim() : '';
  if (text === '') return [];
  if (text === '[DONE]') return ['[DONE]'];
  try {
    const parsed: unknown = JSON.parse(text);
    return typeof parsed === 'object' && parsed !== null ? [parsed as Record<string, unknown>] : [];
  } catch {
    return [];
  }
}
