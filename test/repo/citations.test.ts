/** What comments, charts and docs refer to is in this repository, so that every reader can follow it. */
import { execFileSync } from 'node:child_process';
import { existsSync, readFileSync } from 'node:fs';
import { anchorsOf } from './support/anchors.js';

const SELF = 'test/repo/citations.test.ts';
const tracked = execFileSync('git', ['ls-files'], { encoding: 'utf8' })
  .split('\n')
  .filter((path) => path !== '' && path !== SELF && path !== 'package-lock.json' && existsSync(path));

// A page of docs has headings, no numbered sections; docs/spec.md is cited as "spec 4.3".
const NOT_HERE = /\bDESIGN\b|\b[\w-]+\.md(?: section)? \d/;

/** Whether a reader who follows the reference finds the page, and in it the heading. */
function leadsSomewhere(path: string, anchor: string | undefined): boolean {
  if (!existsSync(path)) return false;
  return anchor === undefined || anchorsOf(readFileSync(path, 'utf8')).has(anchor);
}

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

  test('anchors are made as GitHub makes them', () => {
    const page = '# A `run` (of [us](x.md))\n```sh\n# no heading\n```\n## Trust\n## Names, and more_ids\n## Trust\n';
    expect([...anchorsOf(page)]).toEqual(['a-run-of-us', 'trust', 'names-and-more_ids', 'trust-1']);
  });

  test('of pages of docs name a page that is there, and a heading in it', () => {
    const citing = tracked.filter((path) => /^(src|test|charts|crds|hack|examples)\//.test(path));
    const dead = citing.flatMap((path) =>
      [...readFileSync(path, 'utf8').matchAll(/\b(docs\/[\w./-]+\.md)(?:#([\w-]+))?/g)]
        .filter(([, page = '', anchor]) => !leadsSomewhere(page, anchor))
        .map(([reference]) => `${path}: ${reference}`),
    );
    expect(dead).toEqual([]);
  });
});
