/** Reads the body of a call to its end, so that a sender that writes everything before it reads gets our answer. */
import type { IncomingMessage } from 'node:http';
import type { BodyBudget } from '../net/body-budget.js';
import { readCappedBody, type CappedBody } from '../net/capped-body.js';
import type { Clock } from '../runtime/clock.js';
import { timeoutSignal } from '../runtime/timeout-signal.js';

/** Largest body of a call (spec 8: 1 MB). */
export const MAX_BODY_BYTES = 1_048_576;
/** Beyond this the rest is not read: the connection is closed after the answer. */
const MAX_READ_BYTES = 16 * MAX_BODY_BYTES;
/** Longest time that a sender may take for its body. */
const BODY_TIMEOUT_MS = 30_000;

export interface BodyReading {
  clock: Clock;
  /** The memory budget of all bodies of the process. */
  bodies: BodyBudget;
}

/** Reads the body within limits of size and time; keeps it only if `keep`. Never rejects. */
export async function readRequestBody(
  request: IncomingMessage,
  keep: boolean,
  { clock, bodies }: BodyReading,
): Promise<CappedBody> {
  if (!announcesBody(request)) return { state: 'complete', body: Buffer.alloc(0), drained: true };
  const timeout = timeoutSignal(clock, BODY_TIMEOUT_MS);
  const budget = { all: bodies, address: request.socket.remoteAddress ?? '' };
  const limits = { maxBytes: MAX_BODY_BYTES, maxReadBytes: MAX_READ_BYTES, keep, giveUp: timeout.signal, budget };
  return readCappedBody(request, limits).finally(() => timeout.dispose());
}

function announcesBody(request: IncomingMessage): boolean {
  if (request.headers['transfer-encoding'] !== undefined) return true;
  return (request.headers['content-length'] ?? '0') !== '0';
}
