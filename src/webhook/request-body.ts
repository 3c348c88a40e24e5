/** Reads the body of a call to its end, so that a sender that writes first and reads then gets our answer. */
import type { IncomingMessage } from 'node:http';
import type { Clock } from '../runtime/clock.js';

/** Largest body of a call (spec 8: 1 MB). */
export const MAX_BODY_BYTES = 1_048_576;
/** Beyond this nobody waits for the end: the connection is cut after the answer. */
const MAX_READ_BYTES = 16 * MAX_BODY_BYTES;
/** Longest time that a sender may take for its body. */
export const BODY_TIMEOUT_MS = 30_000;

export type BodyState =
  /** All of it arrived. */
  | 'complete'
  /** More than {@link MAX_BODY_BYTES} arrived. */
  | 'too_large'
  /** It did not end in time. */
  | 'stalled'
  /** The sender went away. */
  | 'aborted';

export interface RequestBody {
  state: BodyState;
  /** Empty unless complete and wanted. */
  body: Buffer;
  /** False when unread bytes remain: the connection cannot be used again. */
  drained: boolean;
}

/** Reads the body within bounds of size and time; keeps it only if `keep`. Never rejects. */
export function readRequestBody(request: IncomingMessage, keep: boolean, clock: Clock): Promise<RequestBody> {
  if (!announcesBody(request)) return Promise.resolve({ state: 'complete', body: Buffer.alloc(0), drained: true });
  // The sender may have gone while the trigger was looked up.
  if (request.destroyed) return Promise.resolve({ state: 'aborted', body: Buffer.alloc(0), drained: false });
  return new Promise((resolve) => {
    const parts: Buffer[] = [];
    let bytes = 0;
    const finish = (state: BodyState, drained: boolean) => {
      cancel();
      request.off('data', onData).off('end', onEnd).off('close', onClose);
      const body = state === 'complete' ? Buffer.concat(parts) : Buffer.alloc(0);
      resolve({ state, body, drained });
    };
    const onData = (part: Buffer) => {
      bytes += part.length;
      if (keep && bytes <= MAX_BODY_BYTES) parts.push(part);
      if (bytes > MAX_READ_BYTES) finish('too_large', false);
    };
    const onEnd = () => finish(bytes > MAX_BODY_BYTES ? 'too_large' : 'complete', true);
    const onClose = () => finish('aborted', false);
    const cancel = clock.after(BODY_TIMEOUT_MS, () => finish(bytes > MAX_BODY_BYTES ? 'too_large' : 'stalled', false));
    // A connection that breaks shows up as `close`; the error itself says nothing more.
    request.on('error', () => undefined);
    request.on('data', onData).on('end', onEnd).on('close', onClose);
  });
}

function announcesBody(request: IncomingMessage): boolean {
  if (request.headers['transfer-encoding'] !== undefined) return true;
  return (request.headers['content-length'] ?? '0') !== '0';
}
