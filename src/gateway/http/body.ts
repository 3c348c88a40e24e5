/** Reading a request's body with a bound. */
import type { IncomingMessage } from 'node:http';
import type { BodyBudget } from '../../net/body-budget.js';
import { readCappedBody } from '../../net/capped-body.js';
import { JsonLimitError, type JsonLimits } from '../../protocol/json-limits.js';
import { GatewayError, tryAgain } from '../errors.js';
import { parseJsonInSteps } from '../json-in-steps.js';

export interface BodyReading {
  maxBytes: number;
  limits?: Partial<JsonLimits>;
  /** What the bodies of the process may hold together. */
  bodies: BodyBudget;
}

/**
 * The parsed JSON of a body of at most `maxBytes` and within the limits of JSON. Rejects with 413 or 400, or with 503 when
 * it came too slowly while others needed its memory; reads no further than the bound.
 */
export async function readJson(request: IncomingMessage, { limits, ...reading }: BodyReading): Promise<unknown> {
  const body = await readBody(request, reading);
  try {
    return await parseJsonInSteps(body, limits);
  } catch (error) {
    const why = error instanceof JsonLimitError ? error.message : 'is not JSON';
    throw new GatewayError(400, `the body ${why}`, { type: 'BadRequest' });
  }
}

async function readBody(request: IncomingMessage, { maxBytes, bodies }: BodyReading): Promise<Buffer> {
  const budget = { all: bodies, address: request.socket.remoteAddress ?? '' };
  const { state, body } = await readCappedBody(request, { maxBytes, budget });
  if (state === 'complete') return body;
  if (state === 'too_large') {
    throw new GatewayError(413, `the body is larger than ${maxBytes} bytes`, { type: 'TooLarge' });
  }
  if (state === 'stalled') throw tryAgain('the body came too slowly');
  throw new GatewayError(400, 'the body ended too early', { type: 'BadRequest' });
}
