import { nearestPlace } from './nearest-place.js';

const FILE = `import { a } from './a.js';

export function add(left: number, right: number): number {
  const sum = left + right;
  return sum;
}

export function twice(value: number): number {
\treturn add(value, value);
}
`;

test('the lines most alike are shown, with what differs', () => {
  expect(
    nearestPlace(FILE, 'export function add(left: number, right: string): number {\n  const sum = left + right;\n'),
  ).toBe(`The nearest place is lines 3 to 4 (- as given, + as in the file):
- export function add(left: number, right: string): number {
+ export function add(left: number, right: number): number {
    const sum = left + right;`);
});

test('white space that differs is written out', () => {
  expect(nearestPlace(FILE, '  return add(value, value);')).toBe(
    `The nearest place is line 9 (- as given, + as in the file): Only white space differs.
-   return add(value, value);
+ "\\treturn add(value, value);"`,
  );
});

test('a line too many is one line of the diff', () => {
  const given = '  const sum = left + right;\n  log(sum);\n  return sum;\n}';
  expect(nearestPlace(FILE, given)?.split('\n')).toEqual([
    'The nearest place is lines 4 to 6 (- as given, + as in the file):',
    '    const sum = left + right;',
    '-   log(sum);',
    '    return sum;',
    '  }',
  ]);
});

test('a text that is like nothing in the file has no place', () => {
  expect(nearestPlace(FILE, 'SELECT name FROM users;')).toBeUndefined();
  expect(nearestPlace('', 'x')).toBeUndefined();
  expect(nearestPlace(FILE, '\n\n\n')).toBeUndefined();
});

test('long lines and long texts are cut', () => {
  const file = Array.from({ length: 100 }, (_, index) => `word${index} ${'x'.repeat(1000)}`).join('\n');
  const shown = nearestPlace(file, file.replaceAll('word', 'Word')) ?? '';
  expect(Buffer.byteLength(shown)).toBeLessThan(20_000);
});
