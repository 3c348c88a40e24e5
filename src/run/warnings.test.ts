import { MAX_RUN_WARNINGS, MAX_RUN_WARNING_BYTES } from '../api/v1alpha1/agent-run.js';
import { withWarnings } from './warnings.js';

test('a text that is told again stands there once, in the order in which they came', () => {
  expect(withWarnings(['b'], ['a', 'b', 'a'])).toEqual(['b', 'a']);
});

test('the list stays the same one when nothing is new', () => {
  const known = ['a', 'b'];
  expect(withWarnings(known, ['b'])).toBe(known);
});

test('a text is cut, and told again it is the same', () => {
  const long = 'é'.repeat(MAX_RUN_WARNING_BYTES);
  const once = withWarnings([], [long]);
  expect(Buffer.byteLength(once[0] ?? '')).toBe(MAX_RUN_WARNING_BYTES);
  expect(withWarnings(once, [long])).toBe(once);
});

test('the last place says that there were more', () => {
  const texts = Array.from({ length: 20 }, (_one, index) => `warning ${index}`);
  const kept = withWarnings([], texts);
  expect(kept).toHaveLength(MAX_RUN_WARNINGS);
  expect(kept.slice(-2)).toEqual(['warning 6', 'There were more warnings than are kept here.']);
  expect(withWarnings(kept, ['another'])).toBe(kept);
});
