/** docs/guarantees.md names tests as proofs: each of them has to be there. */
import { existsSync, readFileSync } from 'node:fs';

const proofs = [...readFileSync('docs/guarantees.md', 'utf8').matchAll(/`([\w/.-]+\.test\.ts)` "([^"]+)"/g)].map(
  ([, file = '', title = '']) => ({ file, title }),
);

describe('docs/guarantees.md', () => {
  test('has a proof in every row of its tables', () => {
    const rows = readFileSync('docs/guarantees.md', 'utf8')
      .split('\n')
      .filter((line) => line.startsWith('| ') && !line.includes('---') && !/\| Proof +\|$/.test(line));
    expect(rows.length).toBeGreaterThan(30);
    expect(rows.filter((row) => !/`[\w/.-]+\.test\.ts` "[^"]+" +\|$/.test(row))).toEqual([]);
  });

  test.each(proofs)('$file has the test "$title"', ({ file, title }) => {
    expect(existsSync(file)).toBe(true);
    expect(readFileSync(file, 'utf8')).toContain(title);
  });
});
