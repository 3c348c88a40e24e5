/** Cutting text by bytes: every bound of a transcript and of a status counts bytes, not characters. */

/** The longest beginning of `text` that has at most `maxBytes` bytes in UTF-8 and ends between two characters. */
export function cutUtf8(text: string, maxBytes: number): string {
  if (text.length * 3 <= maxBytes) return text;
  const bytes = Buffer.from(text, 'utf8');
  if (bytes.length <= maxBytes) return text;
  let end = Math.max(0, maxBytes);
  // 10xxxxxx continues a character: step back to where it begins.
  while (end > 0 && ((bytes[end] ?? 0) & 0b1100_0000) === 0b1000_0000) end -= 1;
  return bytes.toString('utf8', 0, end);
}

/** A text that stays valid JSON after cutting: a too long one becomes an object that says so and keeps the beginning. */
export function cutJson(json: string, maxBytes: number): string {
  const bytes = Buffer.byteLength(json);
  if (bytes <= maxBytes) return json;
  return JSON.stringify({ truncated: true, bytes, text: cutUtf8(json, Math.max(0, Math.floor(maxBytes / 2))) });
}
