import * as fc from 'fast-check';
import { cutJson, cutUtf8 } from './text.js';

test.each([
  ['abc', 3, 'abc'],
  ['abc', 2, 'ab'],
  ['aä', 2, 'a'],
  ['a😀b', 4, 'a'],
  ['a😀b', 5, 'a😀'],
  ['ä', 0, ''],
])('%p in %p bytes is %p', (text, bytes, expected) => {
  expect(cutUtf8(text, bytes)).toBe(expected);
});

test('a cut text is a beginning of the text, within the bound, and not shorter than it must be', () => {
  fc.assert(
    fc.property(fc.string({ unit: 'binary' }), fc.nat(40), (text, max) => {
      const cut = cutUtf8(text, max);
      expect(text.startsWith(cut)).toBe(true);
      expect(Buffer.byteLength(cut)).toBeLessThanOrEqual(max);
      if (cut !== text) expect(Buffer.byteLength(cut)).toBeGreaterThan(max - 4);
    }),
  );
});

test('cut JSON says so and stays JSON', () => {
  expect(cutJson('{"a":1}', 7)).toBe('{"a":1}');
  expect(JSON.parse(cutJson(JSON.stringify('x'.repeat(100)), 40))).toEqual({
    truncated: true,
    bytes: 102,
    text: `"${'x'.repeat(19)}`,
  });
});
