import * as fc from '../../../test/builders/properties.js';
import { MAX_SHOWN_BYTES, renderPayloadBlock, shownMediaType } from './payload-block.js';

const RECEIVED = Date.parse('2026-03-04T05:06:07.089Z');

interface Call {
  contentType?: string;
  body?: string | Buffer;
  query?: string;
  method?: string;
}

function render({ contentType, body = '', query = '', method = 'POST' }: Call, maxBytes?: number): string {
  const input = { slug: 'deploy', method, contentType, body: Buffer.from(body), query, receivedAt: RECEIVED };
  return renderPayloadBlock(input, maxBytes);
}

const TAIL = '\n</trigger_payload>';

/** What stands between the tags. */
function shown(call: Call, maxBytes?: number): string {
  const block = render(call, maxBytes);
  expect(block.endsWith(TAIL)).toBe(true);
  return block.slice(block.indexOf('>\n') + 2, -TAIL.length);
}

describe('renderPayloadBlock', () => {
  it('has the tags and attributes of the spec, unquoted, and pretty-prints JSON', () => {
    expect(render({ contentType: 'application/json; charset=utf-8', body: '{"ref":"main","n":1}' })).toBe(
      '<trigger_payload trigger=deploy method=POST received=2026-03-04T05:06:07.089Z content-type=application/json bytes=20>\n' +
        '{\n  "ref": "main",\n  "n": 1\n}\n' +
        '</trigger_payload>',
    );
  });

  it('is empty between the tags for a call without body and query', () => {
    expect(render({ method: 'GET' })).toBe(
      '<trigger_payload trigger=deploy method=GET received=2026-03-04T05:06:07.089Z content-type=application/octet-stream bytes=0>\n' +
        '\n</trigger_payload>',
    );
  });

  it.each<[string, Call, string]>([
    ['shows text as it came', { contentType: 'text/plain', body: 'a\n  b' }, 'a\n  b'],
    ['shows a form as it came', { contentType: 'application/x-www-form-urlencoded', body: 'a=1&b=2' }, 'a=1&b=2'],
    [
      'prints JSON that a sender calls a form',
      { contentType: 'application/x-www-form-urlencoded', body: '[1]' },
      '[\n  1\n]',
    ],
    ['shows broken JSON as it came', { contentType: 'application/json', body: '{"a":' }, '{"a":'],
    [
      'shows the query as JSON when there is no body',
      { query: 'a=1&b=x+y&a=2' },
      '{\n  "a": [\n    "1",\n    "2"\n  ],\n  "b": "x y"\n}',
    ],
    ['shows query and body', { contentType: 'text/plain', query: 'a=1', body: 'hi' }, 'query: {"a":"1"}\nhi'],
    ['keeps a parameter named __proto__', { query: '__proto__=1' }, '{\n  "__proto__": "1"\n}'],
    ['keeps a query on one line', { query: 'a=%0Aquery%3A', body: 'hi' }, 'query: {"a":"\\nquery:"}\nhi'],
    ['reads UTF-8 without a mark', { contentType: 'text/plain', body: '\ufeffgrün' }, 'grün'],
    ['reads Latin-1', { contentType: 'text/plain; charset=ISO-8859-1', body: Buffer.from([0x67, 0xfc]) }, 'gü'],
    [
      'reads UTF-16 by its mark',
      { contentType: 'text/plain;charset="utf-16"', body: Buffer.from([0xfe, 0xff, 0, 0x68]) },
      'h',
    ],
    ['reads UTF-16 without a mark', { contentType: 'text/plain;charset=utf-16', body: Buffer.from([0x68, 0]) }, 'h'],
    [
      'reads GB 18030',
      { contentType: 'text/plain; charset=gb18030', body: Buffer.from([0xc4, 0xe3, 0xba, 0xc3]) },
      '你好',
    ],
    ['reads Shift_JIS', { contentType: 'text/plain; charset=Shift_JIS', body: Buffer.from([0x82, 0xa0]) }, 'あ'],
    ['reads windows-1252', { contentType: 'text/plain; charset=windows-1252', body: Buffer.from([0x80]) }, '€'],
    ['reads UTF-8 that a sender calls ASCII', { contentType: 'text/plain; charset=us-ascii', body: 'ä' }, 'ä'],
    [
      'reads a charset in single quotes',
      { contentType: "text/plain; charset='iso-8859-1'", body: Buffer.from([0xfc]) },
      'ü',
    ],
    [
      'believes the mark and not the header',
      { contentType: 'application/json; charset=iso-8859-1', body: '\ufeff{"a":"ä"}' },
      '{\n  "a": "ä"\n}',
    ],
    [
      'reads UTF-16 by its mark without a charset',
      { contentType: 'application/json', body: Buffer.from('\ufeff[1]', 'utf16le') },
      '[\n  1\n]',
    ],
    [
      'states half a character of UTF-16 as binary',
      { contentType: 'text/plain; charset=utf-16', body: Buffer.from([0x00, 0xd8]) },
      '(binary payload of 2 bytes, not shown)',
    ],
    [
      'states UTF-32 as binary',
      { contentType: 'text/plain; charset=utf-32', body: Buffer.from([0x68, 0, 0, 0]) },
      '(binary payload of 4 bytes, not shown)',
    ],
    [
      'escapes tags after decoding',
      { contentType: 'text/plain; charset=utf-16', body: Buffer.from('</trigger_payload>', 'utf16le') },
      '&lt;/trigger_payload>',
    ],
    ['reads UTF-8 when the charset is unknown', { contentType: 'text/plain; charset=klingon', body: 'ä' }, 'ä'],
    [
      'states a binary body',
      { contentType: 'image/png', body: Buffer.from([0x89, 0x50, 0x4e, 0xff]) },
      '(binary payload of 4 bytes, not shown)',
    ],
    [
      'states a body with NUL as binary',
      { contentType: 'text/plain', body: 'a\0b' },
      '(binary payload of 3 bytes, not shown)',
    ],
  ])('%s', (_name, call, expected) => expect(shown(call)).toBe(expected));

  it.each([
    ['a closing tag', '</trigger_payload>', '&lt;/trigger_payload>'],
    ['an opening tag', '<trigger_payload trigger=x>', '&lt;trigger_payload trigger=x>'],
    ['any case', '</TRIGGER_Payload>', '&lt;/TRIGGER_Payload>'],
    ['white space', '< /\n\ttrigger_payload >', '&lt; /\n\ttrigger_payload >'],
    [
      'wide and invisible white space',
      '<\u00a0/\u200b\u2003trigger_payload>',
      '&lt;\u00a0/\u200b\u2003trigger_payload>',
    ],
    ['a tag that never ends', '</trigger_payload', '&lt;/trigger_payload'],
    ['a tag in JSON', '["</trigger_payload>"]', '[\n  "&lt;/trigger_payload>"\n]'],
  ])('escapes %s', (_name, body, expected) => expect(shown({ contentType: 'text/plain', body })).toBe(expected));

  it('escapes tags in the query too', () => {
    expect(shown({ query: 'a=%3C/trigger_payload%3E' })).toBe('{\n  "a": "&lt;/trigger_payload>"\n}');
  });

  it('leaves other markup alone', () => {
    expect(shown({ contentType: 'text/html', body: '<b>trigger_payload</b>' })).toBe('<b>trigger_payload</b>');
  });

  it('cuts at 65,536 bytes of shown text and still counts the bytes that were received', () => {
    const block = render({ contentType: 'text/plain', body: 'x'.repeat(70_000) });
    expect(block).toContain(' bytes=70000>\n');
    expect(shown({ body: 'x'.repeat(65_536) })).toBe('x'.repeat(65_536));
    expect(shown({ body: 'x'.repeat(65_537) })).toBe('x'.repeat(65_536));
  });

  it('cuts in front of a character that would not fit', () => {
    expect(shown({ body: `x${'😀'.repeat(20_000)}` })).toBe(`x${'😀'.repeat(16_383)}`);
    expect(shown({ body: `${'x'.repeat(65_535)}ä` })).toBe('x'.repeat(65_535));
  });

  it('cuts JSON after printing', () => {
    const text = shown({
      contentType: 'application/json',
      body: JSON.stringify(Array.from({ length: 30_000 }, () => 1)),
    });
    expect(Buffer.byteLength(text)).toBe(65_536);
    expect(text.startsWith('[\n  1,\n  1,')).toBe(true);
  });

  it('shows less when the caller leaves less room', () => {
    expect(shown({ body: 'abc' }, 2)).toBe('ab');
    expect(shown({ body: 'abc' }, 0)).toBe('');
  });

  it('has one opening and one closing tag and at most 65,536 bytes, whatever the payload', () => {
    const piece = fc.oneof(
      fc.constantFrom(
        '<',
        '/',
        ' ',
        '\n',
        '\u200b',
        'trigger_payload',
        '>',
        '</trigger_payload>',
        '<trigger_payload ',
        '"',
        '{',
        '[',
      ),
      fc.string({ unit: 'binary' }),
    );
    const text = fc.array(piece, { maxLength: 40 }).map((pieces) => pieces.join(''));
    const body = fc.oneof(
      text,
      fc.tuple(text, fc.integer({ min: 1, max: 9_000 })).map(([t, n]) => t.repeat(n).slice(0, 200_000)),
    );
    const query = text.map((t) => encodeURIComponent(t.toWellFormed()));
    fc.assert(
      fc.property(
        body,
        query,
        fc.constantFrom('text/plain', 'application/json', undefined),
        (payload, search, contentType) => {
          const call: Call = { body: payload, query: search, ...(contentType === undefined ? {} : { contentType }) };
          expect(render(call).match(/<[\s\p{C}]*\/[\s\p{C}]*trigger_payload/giu)).toHaveLength(1);
          expect(render(call).match(/<[\s\p{C}]*trigger_payload/giu)).toHaveLength(1);
          expect(Buffer.byteLength(shown(call))).toBeLessThanOrEqual(MAX_SHOWN_BYTES);
        },
      ),
    );
  });
});

describe('shownMediaType', () => {
  it.each([
    ['application/json', 'application/json'],
    ['Application/JSON ; charset=utf-8', 'application/json'],
    ['application/vnd.github+json', 'application/vnd.github+json'],
    [undefined, 'application/octet-stream'],
    ['', 'application/octet-stream'],
    ['text', 'application/octet-stream'],
    ['text/plain bytes=1', 'application/octet-stream'],
    ['text/plain>', 'application/octet-stream'],
    ['text/pl"ain', 'application/octet-stream'],
    ['text/html/x', 'application/octet-stream'],
    [`text/${'x'.repeat(128)}`, 'application/octet-stream'],
  ])('%s is shown as %s', (header, expected) => expect(shownMediaType(header)).toBe(expected));
});
