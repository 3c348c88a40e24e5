import * as fc from '../../test/builders/properties.js';
import { cutMiddle, decodeWhole, cutUtf8 } from './text.js';

test.each([
  ['abc', 3, 'abc'],
  ['abc', 2, 'ab'],
  ['aä', 2, 'a'],
  ['a😀b', 4, 'a'],
  ['a😀b', 5, 'a😀'],
  ['ä', 0, ''],
  ['a\ud800', 9, 'a\ufffd'],
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

test('keeps head and tail within the bound', () => {
  const cut = cutMiddle(`a${'ö'.repeat(500)}z`, 200);
  expect(Buffer.byteLength(cut)).toBeLessThanOrEqual(200);
  expect(cut.startsWith('aö')).toBe(true);
  expect(cut.endsWith('öz')).toBe(true);
  expect(cut).not.toContain('\ufffd');
});

test('drops half characters at both edges', () => {
  const raw = Buffer.from('😀é😀');
  expect(decodeWhole(raw.subarray(1, raw.length - 1))).toBe('é');
});
