/** One answer of a provider, read to its end: nothing of it goes on before it is whole, so that a broken one can be asked for again. */
import { noRoom, readText, type BodyOrigin } from '../../net/capped-body.js';
import { mediaTypeOf } from '../../net/media-type.js';
import { JsonLimitError } from '../../protocol/json-limits.js';
import type { TokenCounts } from '../../run/usage/prices.js';
import { tokensIn } from '../../run/usage/token-meter.js';
import { letOthersRun } from '../../runtime/event-loop.js';
import { parseJsonInSteps } from '../json-in-steps.js';
import type { Dialect, JsonObject } from './dialect.js';
import type { ProviderResponse } from './provider-client.js';
import { modelError, quoted } from './provider-errors.js';
import { StreamEvents } from './stream-events.js';
import { failureIn, type StreamFailure } from './stream-reader.js';
import { TryFailed } from './try-failed.js';

/** No model writes as much. More would keep the event loop busy for too long when it is parsed. */
const MAX_ANSWER_BYTES = 4 * 1024 * 1024;
/** Of a stream: each word of it comes in an event of its own. */
const MAX_STREAM_BYTES = 64 * 1024 * 1024;
/** Of a stream whose events are held until the last one came. */
const MAX_EVENTS_BYTES = 16 * 1024 * 1024;
/** Small events cost most: so much of them takes some ten milliseconds. */
const TURN_BYTES = 128 * 1024;

export interface ModelAnswer {
  contentType: string;
  pieces: readonly (Uint8Array | string)[];
  /** What it says was used. */
  counts: TokenCounts | undefined;
  /** Our measure of what was written. */
  writtenTokens: number;
}

/** What is known of an answer while it comes. */
export interface AnswerProgress {
  /** The model took the request: it costs something from here on. */
  hasBegun: boolean;
  counts: TokenCounts | undefined;
  writtenTokens: number;
  /** What the model has said to whoever reads it; empty for an answer that comes whole. */
  said: string;
}

export interface AnswerOptions {
  provider: string;
  dialect: Dialect;
  /** The runner wants the events themselves, and not the answer that they make. */
  asEvents: boolean;
  /** The key, to be removed from texts. */
  secret: string;
  /** What the bodies of the process may hold together, and where this answer comes from. */
  budget: BodyOrigin;
  /** Told once, before the first byte. */
  follow: (progress: AnswerProgress) => void;
}

/** Rejects with {@link TryFailed} for an answer that is none. */
export async function readModelAnswer(response: ProviderResponse, options: AnswerOptions): Promise<ModelAnswer> {
  const isStream = mediaTypeOf(response.contentType) === 'text/event-stream';
  return isStream ? readStream(response, options) : readWhole(response, options);
}

async function readStream(response: ProviderResponse, options: AnswerOptions): Promise<ModelAnswer> {
  const { dialect, provider, asEvents, budget } = options;
  const reader = dialect.reader();
  options.follow(reader);
  const events = new StreamEvents(MAX_ANSWER_BYTES);
  const pieces: Uint8Array[] = [];
  let bytes = 0;
  let sinceTurn = 0;
  const share = budget.all.open(budget.address, () => response.body.destroy(noRoom()));
  try {
    for await (const piece of response.body as AsyncIterable<Uint8Array>) {
      bytes += piece.length;
      if (bytes > (asEvents ? MAX_EVENTS_BYTES : MAX_STREAM_BYTES)) throw tooLarge();
      if (asEvents) pieces.push(piece);
      for (const event of events.read(piece)) reader.read(event);
      share.holds(asEvents ? bytes : reader.characters);
      if (events.hasSkipped || reader.characters > MAX_ANSWER_BYTES) throw tooLarge();
      if (reader.failure !== undefined) throw failed(reader.failure, options);
      sinceTurn += piece.length;
      // What is there already is read without a turn of the event loop: a fast server would keep all others waiting.
      if (sinceTurn >= TURN_BYTES) {
        sinceTurn = 0;
        await letOthersRun();
      }
    }
    for (const event of events.end()) reader.read(event);
    if (reader.failure !== undefined) throw failed(reader.failure, options);
    reader.ended();
  } catch (error) {
    if (error instanceof TryFailed) throw error;
    // The connection broke; what had come by then may be all of the answer.
  } finally {
    share.release();
  }
  if (!reader.isComplete) throw new TryFailed(modelError(`${provider} broke its answer off.`), { again: true });
  const { counts, writtenTokens } = reader;
  if (asEvents) return { contentType: response.contentType, pieces, counts, writtenTokens };
  const answer = JSON.stringify(reader.answer());
  return { contentType: 'application/json', pieces: [answer], counts, writtenTokens };
}

/** Servers that do not stream answer whole, whatever they are asked. */
async function readWhole(response: ProviderResponse, options: AnswerOptions): Promise<ModelAnswer> {
  const { dialect, provider, budget } = options;
  const progress: AnswerProgress = { hasBegun: false, counts: undefined, writtenTokens: 0, said: '' };
  options.follow(progress);
  const isJson = mediaTypeOf(response.contentType) === 'application/json';
  const text = await readText(response.body, MAX_ANSWER_BYTES, budget).catch(() => {
    // A web page of something in between is no answer of the model, also when it is cut.
    progress.hasBegun = isJson;
    throw new TryFailed(modelError(`${provider} broke its answer off.`), { again: true });
  });
  if (text === undefined) throw tooLarge();
  const parsed = await parsedInSteps(text);
  if (!('json' in parsed) || !isObject(parsed.json)) {
    // JSON that is not whole, or too much of it, is the beginning of an answer.
    progress.hasBegun = isJson && !('json' in parsed) && text.trim() !== '';
    throw new TryFailed(modelError(`${provider} answered ${whatIs(text, parsed)}.`), { again: true });
  }
  const answer = parsed.json;
  const failure = failureIn(answer);
  if (failure !== undefined) throw failed(failure, options);
  if (!isOfModel(answer, dialect)) {
    // Somebody else's JSON: no model was asked.
    throw new TryFailed(modelError(`${provider} answered JSON that is no answer of a model.`), { again: true });
  }
  return {
    contentType: response.contentType,
    pieces: [text],
    counts: dialect.usageOf(answer),
    writtenTokens: writtenIn(answer),
  };
}

/** Whether it says what was used, or has anything of what the protocols call an answer; an empty answer of a model is one. */
function isOfModel(answer: JsonObject, dialect: Dialect): boolean {
  const { choices, content, output, candidates, promptFeedback } = answer;
  const hasPart = [choices, content, output, candidates].some((parts) => Array.isArray(parts) && parts.length > 0);
  return hasPart || promptFeedback !== undefined || dialect.usageOf(answer) !== undefined;
}

type Parsed = { json: unknown } | { error: unknown };

/** Once, with turns of others between its steps: an answer may keep the event loop busy for longer than anybody should wait. */
async function parsedInSteps(text: string): Promise<Parsed> {
  try {
    return { json: await parseJsonInSteps(Buffer.from(text)) };
  } catch (error) {
    return { error };
  }
}

function isObject(json: unknown): json is JsonObject {
  return typeof json === 'object' && json !== null && !Array.isArray(json);
}

/** Of an answer that does not say what it used. */
function writtenIn({ choices, content, output, candidates }: JsonObject): number {
  return tokensIn(choices ?? content ?? output ?? candidates ?? '');
}

function failed({ message, again }: StreamFailure, { provider, secret }: AnswerOptions): TryFailed {
  const said = quoted(message, secret);
  const text = `${provider} ended its answer with an error${said === '' ? '' : `: ${said}`}`;
  return new TryFailed(modelError(`${text}${/[.!?]$/.test(text) ? '' : '.'}`), { again });
}

/** Of an answer that cannot be used. */
function whatIs(text: string, parsed: Parsed): string {
  if (text.trim() === '') return 'nothing';
  if ('json' in parsed) return 'JSON that is no answer of a model';
  const { error } = parsed;
  return error instanceof JsonLimitError ? `JSON that ${error.message}` : 'something that is not JSON';
}

function tooLarge(): TryFailed {
  const error = modelError(`The answer of the model is larger than ${MAX_ANSWER_BYTES} bytes.`);
  return new TryFailed(error, { again: false });
}
