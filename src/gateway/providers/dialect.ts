/**
 * What the gateway must know of a provider's protocol: which calls and fields it passes, and where an answer says what was
 * used. Everything else goes through untouched.
 */
import type { z } from 'zod';
import { parseJsonText } from '../../protocol/json-limits.js';
import type { TokenCounts } from '../../run/usage/prices.js';
import type { ParameterFields } from './optional-parameters.js';
import type { StreamReader } from './stream-reader.js';

/** An object of a protocol, as it came. */
export type JsonObject = Readonly<Record<string, unknown>>;

/** What a request asks for, wherever the protocol says it. */
export interface ModelRequest {
  model: string;
  stream: boolean;
  /** Undefined = the provider's own limit. */
  maxOutputTokens: number | undefined;
}

/** The data of one server-sent event: its JSON, or the closing `[DONE]` of some protocols. */
export type StreamEvent = JsonObject | '[DONE]';

export interface Dialect {
  /** What a path below the version means; undefined = not passed. Paths that name the model or streaming say so. */
  pathOf(path: string): { model?: string; stream?: boolean } | undefined;
  /** The allow-list of the body: no stored ids, hosted tools, background work or remote URLs. */
  body: z.ZodType<Record<string, unknown>>;
  /** `path` is what {@link pathOf} gave. */
  read(body: JsonObject, path: { model?: string; stream?: boolean }): ModelRequest;
  /** The body with a limit of output tokens. */
  limit(body: JsonObject, maxOutputTokens: number): Record<string, unknown>;
  /** What a call can be made without. */
  optional: ParameterFields;
  /** What a whole answer says was used. */
  usageOf(answer: JsonObject): TokenCounts | undefined;
  /** The same call with an answer that streams. */
  streamed(path: string, body: JsonObject): { path: string; body: Record<string, unknown> };
  /** Reads one answer that streams. */
  reader(): StreamReader;
}

/** A field that is an object, else an empty one. */
export function objectIn(value: unknown): JsonObject {
  return typeof value === 'object' && value !== null && !Array.isArray(value) ? (value as JsonObject) : {};
}

/** A text that is a JSON object, undefined for any other and for more than is read (src/protocol/json-limits.ts). */
export function parseObject(text: string): JsonObject | undefined {
  try {
    const parsed: unknown = parseJsonText(text);
    return typeof parsed === 'object' && parsed !== null && !Array.isArray(parsed) ? objectIn(parsed) : undefined;
  } catch {
    return undefined;
  }
}

/** A field that is a number of tokens; 0 for anything else. */
export function countIn(value: unknown): number {
  return typeof value === 'number' && Number.isSafeInteger(value) && value > 0 ? value : 0;
}

/** A field that is a number of tokens, undefined when it is not there. */
export function limitIn(value: unknown): number | undefined {
  return typeof value === 'number' && Number.isSafeInteger(value) && value > 0 ? value : undefined;
}
