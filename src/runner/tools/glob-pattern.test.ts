import { matchesPath, parsePattern } from './glob-pattern.js';

test.each([
  ['*.ts', 'a.ts', true],
  ['*.ts', 'src/a.ts', false],
  ['**/*.ts', 'a.ts', true],
  ['**/*.ts', 'src/x/a.ts', true],
  ['src/**', 'src/a/b', true],
  ['src/**', 'other/a', false],
  ['src/*/c', 'src/b/c', true],
  ['a?c', 'abc', true],
  ['a?c', 'ac', false],
  ['*a*b', 'xaxbxb', true],
  ['{a,b/c}.{js,ts}', 'b/c.ts', true],
  ['{a}', '{a}', true],
  ['./a', 'a', true],
  ['[a]', 'a', false],
])('%s on %s: %s', (pattern, path, expected) => {
  expect(matchesPath(parsePattern(pattern), path)).toBe(expected);
});

test('a pattern made to blow up is answered', () => {
  expect(matchesPath(parsePattern(`${'*a'.repeat(100)}b`), 'a'.repeat(255))).toBe(false);
  expect(matchesPath(parsePattern(`${'**/'.repeat(100)}b`), 'a/'.repeat(500))).toBe(false);
  expect(() => parsePattern('{a,b}'.repeat(50))).toThrow('The pattern has too many alternatives in braces.');
});
