import { pngOf } from '../../../test/builders/png.js';
import { resultOf } from './tool-result.js';

const text = (value: string) => ({ type: 'text', text: value });

test.each([
  ['text', { content: [text('a'), text('b')] }, { isError: false, result: { text: 'a\nb' } }],
  [
    'an object, which says the same as the text',
    { content: [text('{"a":1}')], structuredContent: { a: 1 } },
    { isError: false, result: { a: 1 } },
  ],
  ['an error', { isError: true, content: [text('no')] }, { isError: true, result: { error: 'no' } }],
  [
    'an error without a word',
    { isError: true },
    { isError: true, result: { error: 'The tool failed without a word.' } },
  ],
  ['nothing', {}, { isError: false, result: { text: '' } }],
  [
    'what is no text',
    {
      content: [
        { type: 'image', mimeType: 'image/png', data: 'AAAA' },
        { type: 'resource', resource: { uri: 'file:///a', text: 'inside' } },
        { type: 'resource', resource: { uri: 'file:///b', mimeType: 'application/pdf', blob: 'AAAAAAAA' } },
        { type: 'resource_link', name: 'c', uri: 'https://example.com/c' },
        7,
      ],
    },
    {
      isError: false,
      result: {
        text: [
          '[image of type image/png, 3 bytes, not shown]',
          '[resource file:///a]\ninside',
          '[resource file:///b of type application/pdf, 6 bytes, not shown]',
          '[link to c at https://example.com/c]',
          '[something that is not content of MCP]',
        ].join('\n'),
      },
    },
  ],
])('%s', (_name, answer, result) => {
  expect(resultOf(answer)).toEqual(result);
});

test('a picture is shown beside the words', () => {
  const data = pngOf(2, 2).toString('base64');
  const { result, pictures } = resultOf({
    content: [text('here'), { type: 'image', mimeType: 'image/png', data }],
    structuredContent: { a: 1 },
  });
  expect([result, pictures]).toEqual([{ a: 1 }, [{ mediaType: 'image/png', data }]]);
  const bytes = Buffer.byteLength(data, 'base64');
  expect(resultOf({ content: [{ type: 'image', mimeType: 'image/png', data }] }).result).toEqual({
    text: `[image of type image/png, ${bytes} bytes]`,
  });
  expect(resultOf({ isError: true, content: [{ type: 'image', data }] }).pictures).toBeUndefined();
});

test('a long one is cut to 30,000 bytes', () => {
  const { result } = resultOf({ content: [text('ä'.repeat(100_000))] });
  expect(result).toMatchObject({ truncated: true });
  expect(Buffer.byteLength(JSON.stringify(result))).toBeLessThanOrEqual(30_000);
});
