/** Reads a request's raw body up to a cap; what is beyond it is drained, so that the sender can read the answer. */
import type { IncomingMessage } from 'node:http';

/** The bytes; `too large` above the cap; `gone` when the client went away before the end. Never rejects. */
export function readCappedBody(request: IncomingMessage, maxBytes: number): Promise<Buffer | 'too large' | 'gone'> {
  if (request.destroyed) return Promise.resolve('gone');
  return new Promise((resolve) => {
    const parts: Buffer[] = [];
    let bytes = 0;
    request.on('data', (part: Buffer) => {
      bytes += part.length;
      if (bytes <= maxBytes) parts.push(part);
      else parts.length = 0;
    });
    request.once('end', () => resolve(bytes > maxBytes ? 'too large' : Buffer.concat(parts)));
    request.once('close', () => resolve('gone'));
    request.once('error', () => resolve('gone'));
  });
}
