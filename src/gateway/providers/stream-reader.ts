/**
 * One streamed answer while it comes: what the provider counted so far, how much it has written, whether it reached its end, and
 * the answer as it would have been whole. Each protocol has its own.
 */
import type { TokenCounts } from '../../run/usage/prices.js';
import { TokenMeter } from '../../run/usage/token-meter.js';
import { objectIn } from './dialect.js';
import type { JsonObject, StreamEvent } from './dialect.js';

/** The provider says, in the middle of its stream, that it cannot go on. */
export interface StreamFailure {
  message: string;
  /** Whether the same call may succeed a moment later. */
  again: boolean;
}

/** Of what is shown while it is written, in UTF-16 units: all of it comes when the answer is whole. */
const MAX_SAID = 64 * 1024;

export abstract class StreamReader {
  readonly #written = new TokenMeter();
  #said = '';
  #kept = 0;
  /** What the provider has counted so far. */
  counts: TokenCounts | undefined;
  /** The model took the request: from here on it costs something. */
  hasBegun = false;
  /** The provider said that the answer ends here. */
  isComplete = false;
  failure: StreamFailure | undefined;

  read(event: StreamEvent): void {
    if (event === '[DONE]') this.isComplete ||= this.hasBegun;
    else {
      const failure = failureIn(event);
      if (failure !== undefined) this.failure = failure;
      else this.onEvent(event);
    }
  }

  /** Our measure of what the model wrote so far, in tokens. */
  get writtenTokens(): number {
    return this.#written.characters === 0 ? 0 : this.#written.tokens;
  }

  /** What the model has said so far to whoever reads it: no thoughts, no calls; of a long text its beginning. */
  get said(): string {
    return this.#said;
  }

  /** What is held of the answer so far, in UTF-16 units. */
  get characters(): number {
    return this.#written.characters + this.#kept;
  }

  /** The stream ended by itself: whether what came is an answer, also when the last word of the protocol is missing. */
  abstract ended(): void;

  /** The whole answer, as the protocol has it for calls that do not stream. */
  abstract answer(): JsonObject;

  protected abstract onEvent(event: JsonObject): void;

  /** The model wrote this; anything but a text is passed over. */
  protected wrote(text: unknown): void {
    if (typeof text === 'string') this.#written.add(text);
  }

  /** The model wrote this for people to read; it is not counted here. */
  protected says(text: unknown): void {
    const room = MAX_SAID - this.#said.length;
    if (room > 0) this.#said += textIn(text).slice(0, room);
  }

  /** This is held until the answer is whole, beside what the model wrote. */
  protected kept(value: unknown): void {
    this.#kept += charactersOf(value);
  }

  /** Adds fields to an object that is held, in the place of those of the same name. */
  protected add(to: Record<string, unknown>, fields: JsonObject): void {
    for (const [name, value] of Object.entries(fields)) {
      this.#kept += charactersOf(value) - (Object.hasOwn(to, name) ? charactersOf(to[name]) : -name.length);
    }
    addFields(to, fields);
  }
}

function charactersOf(value: unknown): number {
  return typeof value === 'string' ? value.length : JSON.stringify(value ?? null).length;
}

/** Without a copy of what is there: an answer may come in a million pieces. */
export function addFields(to: Record<string, unknown>, fields: JsonObject): void {
  for (const [name, value] of Object.entries(fields)) if (name !== '__proto__') to[name] = value;
}

/** A text, or nothing. */
export function textIn(value: unknown): string {
  return typeof value === 'string' ? value : '';
}

const PASSING = /overload|rate.?limit|server_error|api_error|internal|time.?out|unavailable|exhausted|try again/i;

/** All protocols have an object `error`, or an event of that type. */
export function failureIn(event: JsonObject): StreamFailure | undefined {
  const { error } = event;
  const isError = event['type'] === 'error' || typeof error === 'string' || Object.keys(objectIn(error)).length > 0;
  if (!isError) return undefined;
  const said = Object.keys(objectIn(error)).length > 0 ? objectIn(error) : event;
  const message = textIn(said['message']) || textIn(error);
  const code = Number(said['code']);
  const words = [said['type'], said['code'], said['status']].map(textIn).join(' ');
  return { message, again: code === 408 || code === 429 || code >= 500 || PASSING.test(words) };
}
