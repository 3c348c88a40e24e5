/** Bytes of a payload to text: by the byte order mark, else by the charset of the Content-Type, else as UTF-8. */

const CHARSET_PARAMETER = /;\s*charset\s*=\s*(?:"([^"]*)"|'([^']*)'|([^;\s]+))/i;

/**
 * ASCII is what the standard's table calls windows-1252; senders that say it and send more mean UTF-8. Everything else that
 * the platform knows goes by the table of https://encoding.spec.whatwg.org: UTF-16, ISO 8859, Windows, GB 18030, Big5,
 * Shift_JIS, EUC.
 */
const ASCII = new Set(['us-ascii', 'ascii', 'ansi_x3.4-1968']);

/** The text without a byte order mark; undefined for binary data, that is an invalid sequence or a NUL. */
export function decodePayload(body: Buffer, contentType: string | undefined): string | undefined {
  const [, double, single, bare] = CHARSET_PARAMETER.exec(contentType ?? '') ?? [];
  const decoder = decoderOf(markOf(body) ?? (double ?? single ?? bare ?? '').trim().toLowerCase());
  try {
    const text = decoder.decode(body);
    return text.includes('\0') ? undefined : text;
  } catch {
    // The decoder's only error is an invalid sequence.
    return undefined;
  }
}

/** A byte order mark says more than a header that somebody configured once. */
function markOf(body: Buffer): string | undefined {
  if (body[0] === 0xef && body[1] === 0xbb && body[2] === 0xbf) return 'utf-8';
  if (body[0] === 0xfe && body[1] === 0xff) return 'utf-16be';
  if (body[0] === 0xff && body[1] === 0xfe) return 'utf-16le';
  return undefined;
}

/** UTF-8 for a label that is absent or that nobody knows. */
function decoderOf(label: string): Pick<InstanceType<typeof TextDecoder>, 'decode'> {
  if (label === '' || ASCII.has(label)) return new TextDecoder('utf-8', { fatal: true });
  try {
    return new TextDecoder(label, { fatal: true });
  } catch {
    // An unknown label.
    return new TextDecoder('utf-8', { fatal: true });
  }
}
