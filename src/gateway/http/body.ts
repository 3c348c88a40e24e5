/** Reading a request's body with a bound. */
import type { IncomingMessage } from 'node:http';
import { readCappedBody } from '../../net/capped-body.js';
import { exceedsDepth } from '../../protocol/json-depth.js';
import { GatewayError } from '../errors.js';

/**
 * The parsed JSON of a body of at most `maxBytes`, which nests at most `maxDepth` deep if that is given. Rejects with 413 or
 * 400; reads no further than the bound.
 */
export async function readJson(request: IncomingMessage, maxBytes: number, maxDepth?: number): Promise<unknown> {
  const body = await readBody(request, maxBytes);
  if (maxDepth !== undefined && exceedsDepth(body, maxDepth)) {
    throw new GatewayError(400, `the body nests deeper than ${maxDepth}`, { type: 'BadRequest' });
  }
  try {
    return JSON.parse(body.toString('utf8'));
  } catch {
    throw new GatewayError(400, 'the body is not JSON', { type: 'BadRequest' });
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
