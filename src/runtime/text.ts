/** Cutting of text by bytes, and never inside a character. */

/** The longest beginning of the text that has at most `maxBytes` bytes in UTF-8; half a surrogate pair becomes U+FFFD. */
export function cutUtf8(text: string, maxBytes: number): string {
  const whole = text.toWellFormed();
  if (whole.length * 3 <= maxBytes || Buffer.byteLength(whole) <= maxBytes) return whole;
  const { read } = new TextEncoder().encodeInto(whole, new Uint8Array(Math.max(0, maxBytes)));
  return whole.slice(0, read);
}

/** The text, or its first and last part around a mark, in at most `maxBytes` of UTF-8 (at least 64). */
export function cutMiddle(text: string, maxBytes: number): string {
  const bytes = Buffer.byteLength(text);
  if (bytes <= maxBytes) return text;
  const mark = `\n[... cut, ${bytes} bytes in all ...]\n`;
  const half = Math.max(0, Math.floor((maxBytes - Buffer.byteLength(mark)) / 2));
  const raw = Buffer.from(text, 'utf8');
  return `${decodeWhole(raw.subarray(0, half))}${mark}${decodeWhole(raw.subarray(raw.length - half))}`;
}

/** The text without line breaks and wide gaps. */
export function oneLine(text: string): string {
  return text.replace(/\s+/g, ' ').trim();
}

/** Decodes a part of UTF-8 without the half characters at its edges. */
export function decodeWhole(part: Buffer): string {
  let start = 0;
  while (start < part.length && start < 3 && ((part[start] ?? 0) & 0xc0) === 0x80) start += 1;
  let end = part.length;
  for (let back = 1; back <= 4 && back <= part.length - start; back++) {
    const byte = part[part.length - back] ?? 0;
    if ((byte & 0xc0) === 0x80) continue;
    const length = byte >= 0xf0 ? 4 : byte >= 0xe0 ? 3 : byte >= 0xc0 ? 2 : 1;
    if (length > back) end = part.length - back;
    break;
  }
  return part.toString('utf8', start, end);
}
