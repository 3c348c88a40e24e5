import { nearNames } from './near-names.js';
import { sessionTitleOf } from '../run/session/title.js';

describe('names that somebody may have meant', () => {
  test.each([
    ['the nearest first', 'dayly', ['weekly', 'daily', 'monthly'], 'daily, weekly, monthly'],
    ['in any case', 'DAILY', ['weekly', 'daily'], 'daily, weekly'],
    ['equally near ones by name', 'x', ['c', 'b', 'a'], 'a, b, c'],
    ['at most five', 'a', ['a1', 'a2', 'a3', 'a4', 'a5', 'a6'], 'a1, a2, a3, a4, a5, …'],
    ['none', 'a', [], ''],
    ['after a very long text', 'a'.repeat(1_000_000), ['a', 'bb'], 'a, bb'],
  ])('%s', (_what, wanted, known, expected) => {
    expect(nearNames(wanted, known)).toBe(expected);
  });
});

describe('the title of a session', () => {
  test.each([
    ['a short text', 'Hello', 'Hello'],
    ['one line', ' Hello,\n\tyou  there ', 'Hello, you there'],
    ['exactly 128 characters', 'a'.repeat(128), 'a'.repeat(128)],
    ['a longer one is cut', 'a'.repeat(129), `${'a'.repeat(127)}…`],
    ['between characters', '😀'.repeat(200), `${'😀'.repeat(127)}…`],
  ])('%s', (_what, text, expected) => {
    expect(sessionTitleOf(text)).toBe(expected);
  });
});
