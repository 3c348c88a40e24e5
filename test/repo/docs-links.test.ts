/** Pages lead somewhere: every relative link with its anchor, and every path of the repository that a page names. */
import { execFileSync } from 'node:child_process';
import { existsSync, readFileSync } from 'node:fs';
import { dirname, join, normalize } from 'node:path';
import { anchorsOf } from './support/anchors.js';

const pages = execFileSync('git', ['ls-files', '*.md'], { encoding: 'utf8' })
  .split('\n')
  .filter((path) => path !== '' && existsSync(path));

/** The text of a page without blocks of code, whose brackets are no links. */
function textOf(page: string): string {
  return readFileSync(page, 'utf8').replaceAll(/^```[^]*?^```/gm, '');
}

/** Why a link of a page leads nowhere; undefined when it leads somewhere. */
function problemOf(page: string, link: string): string | undefined {
  const [path = '', anchor] = link.split('#', 2);
  const target = path === '' ? page : normalize(join(dirname(page), path));
  if (!existsSync(target)) return `${page}: ${link}: no such file`;
  if (anchor === undefined || !target.endsWith('.md')) return undefined;
  return anchorsOf(readFileSync(target, 'utf8')).has(anchor) ? undefined : `${page}: ${link}: no such heading`;
}

describe.each(pages)('%s', (page) => {
  test('has only links that lead somewhere', () => {
    const links = [...textOf(page).matchAll(/\]\((?!https?:|mailto:)([^)\s]+)\)/g)].map(([, link = '']) => link);
    expect(links.flatMap((link) => problemOf(page, link) ?? [])).toEqual([]);
  });

  test('names only paths that are there', () => {
    const named = [...textOf(page).matchAll(/`((?:src|test|docs|charts|crds|hack|examples)\/[\w./-]*)`/g)];
    const missing = named.map(([, path = '']) => path).filter((path) => !existsSync(path));
    expect(missing).toEqual([]);
  });
});

test('the README leads to every page', () => {
  const linked = [...textOf('README.md').matchAll(/\]\(([^)#\s]+)/g)].map(([, link = '']) => normalize(link));
  expect(pages.filter((page) => page !== 'README.md' && !linked.includes(page))).toEqual([]);
});
