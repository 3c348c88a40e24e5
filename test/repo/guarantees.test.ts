/** docs/guarantees.md and docs/threat-model.md name tests as proofs: each of them has to be there. */
import { existsSync, readFileSync } from 'node:fs';

describe.each([
  ['docs/guarantees.md', 30],
  ['docs/threat-model.md', 20],
])('%s', (page, least) => {
  const text = readFileSync(page, 'utf8');
  const proofs = [...text.matchAll(/`([\w/.-]+\.test\.ts)` "([^"]+)"/g)].map(([, file = '', title = '']) => ({
    file,
    title,
  }));

  test('has a proof in every row of its tables', () => {
    const rows = text
      .split('\n')
      .filter((line) => line.startsWith('| ') && !line.includes('---') && !/\| Proof +\|$/.test(line));
    expect(rows.length).toBeGreaterThan(least);
    expect(rows.filter((row) => !/`[\w/.-]+\.test\.ts` "[^"]+" +\|$/.test(row))).toEqual([]);
  });

  test.each(proofs)('$file has the test "$title"', ({ file, title }) => {
    expect(existsSync(file)).toBe(true);
    expect(readFileSync(file, 'utf8')).toContain(title);
  });
});
