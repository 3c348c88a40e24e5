/** Reading a request's body with a bound. */
import type { IncomingMessage } from 'node:http';
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
  const parts: Buffer[] = [];
  let bytes = 0;
  try {
    // Leaving the loop must not destroy the connection: the caller is to read the answer.
    for await (const part of request.iterator({ destroyOnReturn: false }) as AsyncIterable<Buffer>) {
      bytes += part.length;
      if (bytes > maxBytes) break;
      parts.push(part);
    }
  } catch {
    throw new GatewayError(400, 'the body ended too early', {
      type: 'BadRequest',
    });
  }
  if (bytes <= maxBytes) return Buffer.concat(parts);
  throw new GatewayError(413, `the body is larger than ${maxBytes} bytes`, { type: 'TooLarge' });
}
