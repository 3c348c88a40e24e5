/** Reading a request's body with a bound. */
import type { IncomingMessage } from 'node:http';
import { readCappedBody } from '../../net/capped-body.js';
import { JsonLimitError, parseJson, type JsonLimits } from '../../protocol/json-limits.js';
import { GatewayError } from '../errors.js';

/**
 * The parsed JSON of a body of at most `maxBytes` and within the limits of JSON. Rejects with 413 or 400; reads no further
 * than the bound.
 */
export async function readJson(
  request: IncomingMessage,
  maxBytes: number,
  limits: Partial<JsonLimits> = {},
): Promise<unknown> {
  const body = await readBody(request, maxBytes);
  try {
    return parseJson(body, limits);
  } catch (error) {
    const why = error instanceof JsonLimitError ? error.message : 'is not JSON';
    throw new GatewayError(400, `the body ${why}`, { type: 'BadRequest' });
  }
}

async function readBody(request: IncomingMessage, maxBytes: number): Promise<Buffer> {
  const { state, body } = await readCappedBody(request, { maxBytes });
  if (state === 'complete') return body;
  if (state === 'too_large') {
    throw new GatewayError(413, `the body is larger than ${maxBytes} bytes`, { type: 'TooLarge' });
  }
  throw new GatewayError(400, 'the body ended too early', { type: 'BadRequest' });
}
