/**
 * The block with the caller's payload that follows a trigger's body (spec 4.3.3). The text is hostile: it cannot end the
 * block early, open a second one, grow beyond 64 KB or cost more than one pass over its bytes.
 */
import { mediaTypeOf } from '../../net/media-type.js';
import { decodePayload } from './decode-payload.js';
import { prettyJson } from './pretty-json.js';
import { cutUtf8 } from '../../runtime/text.js';
import { escapeOutsideTags } from '../outside-text.js';

/** Longest payload text in bytes of UTF-8 (spec 8: 64 KB). */
export const MAX_SHOWN_BYTES = 65_536;

export interface PayloadInput {
  slug: string;
  method: string;
  /** The Content-Type header as received. */
  contentType: string | undefined;
  body: Buffer;
  /** Query string without the question mark. */
  query: string;
  /** Milliseconds since the epoch. */
  receivedAt: number;
}

/** Opening tag, at most `maxBytes` of payload, closing tag. */
export function renderPayloadBlock(input: PayloadInput, maxBytes = MAX_SHOWN_BYTES): string {
  const attributes = [
    `trigger=${input.slug}`,
    `method=${input.method}`,
    `received=${new Date(input.receivedAt).toISOString()}`,
    `content-type=${shownMediaType(input.contentType)}`,
    `bytes=${input.body.length}`,
  ];
  return `<trigger_payload ${attributes.join(' ')}>\n${shownText(input, maxBytes)}\n</trigger_payload>`;
}

/** type/subtype, both of at most 127 token characters (RFC 6838, RFC 9110). */
const MEDIA_TYPE = /^[!#$%&'*+.^_`|~0-9a-z-]{1,127}\/[!#$%&'*+.^_`|~0-9a-z-]{1,127}$/;

/** The media type of the header as it is shown: attributes of the block are unquoted, so only a token/token may stand there. */
export function shownMediaType(header: string | undefined): string {
  const type = mediaTypeOf(header);
  return MEDIA_TYPE.test(type) ? type : 'application/octet-stream';
}

/** What stands between the tags: at most `maxBytes` of UTF-8, whole characters. */
function shownText(input: PayloadInput, maxBytes: number): string {
  return cutUtf8(escapeOutsideTags(payloadText(input)), maxBytes);
}

function payloadText(input: PayloadInput): string {
  const query = queryObject(input.query);
  if (input.body.length === 0) return query === undefined ? '' : JSON.stringify(query, null, 2);
  const text = bodyText(input.body, input.contentType);
  return query === undefined ? text : `query: ${JSON.stringify(query)}\n${text}`;
}

function bodyText(body: Buffer, contentType: string | undefined): string {
  const text = decodePayload(body, contentType);
  if (text === undefined) return `(binary payload of ${body.length} bytes, not shown)`;
  // A character has at least one byte and escaping only lengthens: nothing behind the bound can be shown.
  return prettyJson(text, MAX_SHOWN_BYTES).text ?? text.slice(0, MAX_SHOWN_BYTES);
}

/** Parameters by name, a list for a name that comes twice; undefined without any. */
function queryObject(query: string): Record<string, string | string[]> | undefined {
  const values = new Map<string, string | string[]>();
  for (const [name, value] of new URLSearchParams(query)) {
    const before = values.get(name);
    if (before === undefined) values.set(name, value);
    else if (Array.isArray(before)) before.push(value);
    else values.set(name, [before, value]);
  }
  return values.size === 0 ? undefined : Object.fromEntries(values);
}
