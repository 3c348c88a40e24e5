/** Reading the answer of another server with a bound. */
import type { Readable } from 'node:stream';

/** The whole text; undefined when it has more than `maxBytes`, and then no more is read. Rejects when the body is cut. */
export async function readText(body: Readable, maxBytes: number): Promise<string | undefined> {
  const pieces: Uint8Array[] = [];
  let bytes = 0;
  for await (const piece of body as AsyncIterable<Uint8Array>) {
    bytes += piece.length;
    if (bytes > maxBytes) return undefined;
    pieces.push(piece);
  }
  return Buffer.concat(pieces).toString('utf8');
}
