/** Reading a request's body with a bound. */
import type { IncomingMessage } from 'node:http';
import { GatewayError } from '../errors.js';

/** The parsed JSON of a body of at most `maxBytes`. Rejects with 413 or 400; reads no further than the bound. */
export async function readJson(request: IncomingMessage, maxBytes: number): Promise<unknown> {
  const parts: Buffer[] = [];
  let bytes = 0;
  // Leaving the loop must not destroy the connection: the caller is to read the answer.
  for await (const part of request.iterator({ destroyOnReturn: false }) as AsyncIterable<Buffer>) {
    bytes += part.length;
    if (bytes > maxBytes)
      throw new GatewayError(413, `the body is larger than ${maxBytes} bytes`, { type: 'TooLarge' });
    parts.push(part);
  }
  try {
    return JSON.parse(Buffer.concat(parts).toString('utf8'));
  } catch {
    throw new GatewayError(400, 'the body is not JSON');
  }
}
