/** Newline-delimited JSON out of chunks of bytes, as watches send it. */
import { TextLines } from '../net/lines.js';

/** Yields one value per line; a last line without its newline was cut and is dropped. */
export async function* readJsonLines(chunks: AsyncIterable<Uint8Array>): AsyncIterable<unknown> {
  const lines = new TextLines();
  for await (const chunk of chunks) {
    for (const line of lines.read(chunk)) if (line.trim() !== '') yield JSON.parse(line) as unknown;
  }
}
