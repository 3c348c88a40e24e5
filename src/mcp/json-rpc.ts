/**
 * JSON-RPC 2.0 as this endpoint speaks it (spec 4.1, 7): one object a request, ids given back as they came. Pure:
 * bytes in, bytes out; the router adds HTTP.
 */
import { JsonLimitError, numberAsWritten, parseJson } from '../protocol/json-limits.js';
import { bytesOf, hasFrozenList, memoizedJson } from './memoized-text.js';
import type { Piece } from './memoized-text.js';

export const PARSE_ERROR = -32700;
export const INVALID_REQUEST = -32600;
export const METHOD_NOT_FOUND = -32601;
export const INTERNAL_ERROR = -32603;

/** What was posted. `id` is JSON text, ready to be put into the answer. */
export type Incoming =
  | { kind: 'request'; id: string; method: string; params: unknown }
  /** Nothing is executed and nothing is answered. */
  | { kind: 'notification' }
  | { kind: 'invalid'; id: string; code: number; message: string };

/** Reads one posted body. Never throws. */
export function parseIncoming(body: Uint8Array): Incoming {
  try {
    return classify(parseJson(body), body);
  } catch (error) {
    if (error instanceof JsonLimitError) return invalid('null', `the body ${error.message}`);
    return { kind: 'invalid', id: 'null', code: PARSE_ERROR, message: 'Parse error: the body is not valid JSON' };
  }
}

function classify(message: unknown, body: Uint8Array): Incoming {
  if (typeof message !== 'object' || message === null || Array.isArray(message)) {
    return invalid('null', 'the body must be one JSON-RPC object; batches are not supported');
  }
  const { jsonrpc, id, method, params } = message as Record<string, unknown>;
  const hasId = 'id' in message;
  if (hasId && id !== null && typeof id !== 'string' && typeof id !== 'number') {
    return invalid('null', 'id must be a string, a number or null');
  }
  const idText = hasId ? idAsWritten(id, body) : 'null';
  // Clients may answer requests that we never send: noise, not an error.
  if (method === undefined && ('result' in message || 'error' in message)) return { kind: 'notification' };
  if (jsonrpc !== '2.0') return invalid(idText, 'jsonrpc must be "2.0"');
  if (typeof method !== 'string') return invalid(idText, 'method must be a string');
  return hasId ? { kind: 'request', id: idText, method, params } : { kind: 'notification' };
}

function invalid(id: string, why: string): Incoming {
  return { kind: 'invalid', id, code: INVALID_REQUEST, message: `Invalid Request: ${why}` };
}

/** A number that JavaScript cannot hold is taken from the source text, so that the client recognizes its id. */
function idAsWritten(id: unknown, body: Uint8Array): string {
  if (typeof id !== 'number' || Number.isSafeInteger(id)) return JSON.stringify(id);
  return numberAsWritten(new TextDecoder().decode(body), 'id') ?? JSON.stringify(id);
}

/** An answer from a result that is JSON text already, in pieces. */
export function resultBytes(id: string, ...result: readonly Piece[]): Buffer[] {
  return bytesOf([`{"jsonrpc":"2.0","id":${id},"result":`, ...result, '}']);
}

/** An answer with an error. */
export function errorBytes(id: string, code: number, message: string): Buffer[] {
  return bytesOf([`{"jsonrpc":"2.0","id":${id},"error":${JSON.stringify({ code, message })}}`]);
}

/** Result of a tool that succeeded: text and structuredContent are the same data, serialised once (spec 4.1). */
export function toolResult(payload: object): readonly Piece[] {
  if (hasFrozenList(payload)) {
    const { plain, quoted } = memoizedJson(payload);
    return ['{"content":[{"type":"text","text":"', ...quoted, '"}],"structuredContent":', ...plain, '}'];
  }
  const json = JSON.stringify(payload);
  return [`{"content":[{"type":"text","text":${JSON.stringify(json)}}],"structuredContent":${json}}`];
}

/** Result of a tool that failed (spec 7): never with structuredContent. */
export function toolError(message: string): readonly Piece[] {
  const json = JSON.stringify({ error: message });
  return [`{"content":[{"type":"text","text":${JSON.stringify(json)}}],"isError":true}`];
}
