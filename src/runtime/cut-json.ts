/** Cutting of JSON to a number of bytes: what is left is valid JSON and carries a mark. */
import { cutMiddle, cutUtf8 } from './text.js';

/**
 * JSON of a value in at most `maxBytes` (at least 256, room for the marks). A value that is too large is cut inside its
 * longest strings, and carries `"truncated": true` and `"bytes"`, its size before. Always valid JSON.
 */
export function cutJson(value: unknown, maxBytes: number): string {
  const json = stringify(value);
  const bytes = Buffer.byteLength(json);
  if (bytes <= maxBytes) return json;
  return cutStrings(value, bytes, maxBytes) ?? preview(json, maxBytes);
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
  if (typeof value === 'string') return cutMiddle(value, limit);
  if (Array.isArray(value)) return value.map((item) => cutLeaves(item, limit));
  if (typeof value !== 'object' || value === null) return value;
  return Object.fromEntries(Object.entries(value).map(([key, item]) => [key, cutLeaves(item, limit)]));
}

/** For values whose size is not in strings. */
function preview(json: string, maxBytes: number): string {
  let size = maxBytes;
  while (Buffer.byteLength(jsonPreview(json, size)) > maxBytes) size = Math.floor(size * 0.75);
  return jsonPreview(json, size);
}

/** An object in place of JSON that is too large: it says so, and holds its first bytes as a string. */
export function jsonPreview(json: string, bytesKept: number): string {
  return JSON.stringify({ truncated: true, bytes: Buffer.byteLength(json), preview: cutUtf8(json, bytesKept) });
}
