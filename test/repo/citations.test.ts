/** What comments, charts and docs refer to is in this repository, so that every reader can follow it. */
import { execFileSync } from 'node:child_process';
import { existsSync, readFileSync } from 'node:fs';

const SELF = 'test/repo/citations.test.ts';
const tracked = execFileSync('git', ['ls-files'], { encoding: 'utf8' })
  .split('\n')
  .filter((path) => path !== '' && path !== SELF && path !== 'package-lock.json' && existsSync(path));

// A page of docs has headings, no numbered sections; docs/spec.md is cited as "spec 4.3".
const NOT_HERE = /\bDESIGN\b|\b[\w-]+\.md(?: section)? \d/;

describe('citations', () => {
  test('name no document that is not in the repository', () => {
    const found = tracked.flatMap((path) =>
      readFileSync(path, 'utf8')
        .split('\n')
        .filter((line) => NOT_HERE.test(line))
        .map((line) => `${path}: ${line.trim()}`),
    );
    expect(found).toEqual([]);
  });
});
