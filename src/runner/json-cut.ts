/** Cutting of texts and JSON to a number of bytes: what is stored of a tool call is bounded and stays valid JSON. */

/** Stored input of a tool call, in bytes of JSON. */
export const MAX_STORED_INPUT_BYTES = 16 * 1024;
/** Stored result of a tool call, in bytes of JSON. */
export const MAX_STORED_RESULT_BYTES = 32 * 1024;
/** Smallest bound that {@link cutJson} accepts: room for the marks themselves. */
export const MIN_CUT_BYTES = 256;

/** The text, or its first and last part around a mark, in at most `maxBytes` of UTF-8 (at least 64). */
export function cutText(text: string, maxBytes: number): string {
  const bytes = Buffer.byteLength(text);
  if (bytes <= maxBytes) return text;
  const mark = `\n[... cut, ${bytes} bytes in all ...]\n`;
  const half = Math.max(0, Math.floor((maxBytes - Buffer.byteLength(mark)) / 2));
  const raw = Buffer.from(text, 'utf8');
  return `${decodeWhole(raw.subarray(0, half))}${mark}${decodeWhole(raw.subarray(raw.length - half))}`;
}

/** The longest beginning of the text in at most `maxBytes` of UTF-8, never half a character. */
export function headOfText(text: string, maxBytes: number): string {
  return decodeWhole(Buffer.from(text, 'utf8').subarray(0, maxBytes));
}

/** Decodes a grant of UTF-8 without the half characters at its edges. */
export function decodeWhole(grant: Buffer): string {
  let start = 0;
  while (start < grant.length && start < 3 && ((grant[start] ?? 0) & 0xc0) === 0x80) start += 1;
  let end = grant.length;
  for (let back = 1; back <= 4 && back <= grant.length - start; back++) {
    const byte = grant[grant.length - back] ?? 0;
    if ((byte & 0xc0) === 0x80) continue;
    const length = byte >= 0xf0 ? 4 : byte >= 0xe0 ? 3 : byte >= 0xc0 ? 2 : 1;
    if (length > back) end = grant.length - back;
    break;
  }
  return grant.toString('utf8', start, end);
}

/**
 * JSON of a value in at most `maxBytes` (at least {@link MIN_CUT_BYTES}). A value that is too large is cut inside its
 * longest strings, and carries `"truncated": true` and `"bytes"`, its size before. Always valid JSON.
 */
export function cutJson(value: unknown, maxBytes: number): string {
  const json = stringify(value);
  const bytes = Buffer.byteLength(json);
  if (bytes <= maxBytes) return json;
  return cutStrings(value, bytes, maxBytes) ?? preview(json, bytes, maxBytes);
}

function stringify(value: unknown): string {
  try {
    return JSON.stringify(value) ?? 'null';
  } catch {
    // Nested deeper than the stack, or not JSON at all.
    return '{"truncated":true,"error":"the value cannot be written as JSON"}';
  }
}

function cutStrings(value: unknown, bytes: number, maxBytes: number): string | undefined {
  const marked = (limit: number) => JSON.stringify({ ...asObject(cutLeaves(value, limit)), truncated: true, bytes });
  let low = 64;
  try {
    if (Buffer.byteLength(marked(low)) > maxBytes) return undefined;
  } catch {
    // Nested deeper than the stack holds here, though not for the writer of JSON.
    return undefined;
  }
  let best = low;
  let high = maxBytes;
  while (low <= high) {
    const middle = Math.floor((low + high) / 2);
    if (Buffer.byteLength(marked(middle)) <= maxBytes) {
      best = middle;
      low = middle + 1;
    } else high = middle - 1;
  }
  return marked(best);
}

function asObject(value: unknown): Record<string, unknown> {
  return typeof value === 'object' && value !== null && !Array.isArray(value)
    ? (value as Record<string, unknown>)
    : { value };
}

function cutLeaves(value: unknown, limit: number): unknown {
  if (typeof value === 'string') return cutText(value, limit);
  if (Array.isArray(value)) return value.map((item) => cutLeaves(item, limit));
  if (typeof value !== 'object' || value === null) return value;
  return Object.fromEntries(Object.entries(value).map(([key, item]) => [key, cutLeaves(item, limit)]));
}

/** For values whose size is not in strings: the beginning of the JSON text, as a string in a new object. */
function preview(json: string, bytes: number, maxBytes: number): string {
  const build = (size: number) => JSON.stringify({ truncated: true, bytes, preview: headOfText(json, size) });
  let size = maxBytes;
  while (Buffer.byteLength(build(size)) > maxBytes) size = Math.floor(size * 0.75);
  return build(size);
}
