/** Bytes of a payload to text, by the charset of its Content-Type. */

/** The charsets that senders use; any other label is read as UTF-8, and as binary when that fails. */
const CHARSETS = new Map([
  ['utf-8', 'utf-8'],
  ['utf8', 'utf-8'],
  ['us-ascii', 'utf-8'],
  ['iso-8859-1', 'latin1'],
  ['latin1', 'latin1'],
  ['windows-1252', 'latin1'],
  ['utf-16', 'utf-16'],
  ['utf-16le', 'utf-16le'],
  ['utf-16be', 'utf-16be'],
]);

const CHARSET_PARAMETER = /;\s*charset\s*=\s*"?([^";\s]+)/i;

/** The text without a byte order mark; undefined for binary data, that is an invalid sequence or a NUL. */
export function decodePayload(body: Buffer, contentType: string | undefined): string | undefined {
  const label = CHARSET_PARAMETER.exec(contentType ?? '')?.[1]?.toLowerCase() ?? 'utf-8';
  const charset = CHARSETS.get(label) ?? 'utf-8';
  try {
    const text = new TextDecoder(withByteOrder(charset, body), { fatal: true }).decode(body);
    return text.includes('\0') ? undefined : text;
  } catch {
    // The decoder's only error is an invalid sequence.
    return undefined;
  }
}

/** Plain `utf-16` takes its byte order from the mark and is little endian without one, as the WHATWG decoder is. */
function withByteOrder(charset: string, body: Buffer): string {
  if (charset !== 'utf-16') return charset;
  return body[0] === 0xfe && body[1] === 0xff ? 'utf-16be' : 'utf-16le';
}
