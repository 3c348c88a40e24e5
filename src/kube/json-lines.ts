/** Newline-delimited JSON out of chunks of bytes, as watches send it. */

/** Yields one value per line; a last line without its newline was cut and is dropped. */
export async function* readJsonLines(chunks: AsyncIterable<Uint8Array>): AsyncIterable<unknown> {
  const decoder = new TextDecoder();
  // Parts of a line that is not complete yet; joined once, so that a long line costs no copy per chunk.
  let parts: string[] = [];
  for await (const chunk of chunks) {
    const lines = decoder.decode(chunk, { stream: true }).split('\n');
    const rest = lines.pop() as string;
    for (const line of lines) {
      const text = parts.join('') + line;
      parts = [];
      if (text.trim() !== '') yield JSON.parse(text) as unknown;
    }
    if (rest !== '') parts.push(rest);
  }
}
