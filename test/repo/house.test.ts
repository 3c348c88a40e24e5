/** Rules about the repository that no other tool checks. */
import { execFileSync } from 'node:child_process';
import { existsSync, readFileSync } from 'node:fs';
import { parseAllDocuments } from 'yaml';
import { ALL_KINDS } from '../../src/api/v1alpha1/index.js';

const tracked = execFileSync('git', ['ls-files'], { encoding: 'utf8' })
  .split('\n')
  .filter((path) => path !== '' && existsSync(path));
const sources = tracked.filter((path) => /^(src|test|hack)\/.*\.(ts|mjs)$/.test(path));

function samplesIn(path: string): { kind: string }[] {
  return parseAllDocuments(readFileSync(path, 'utf8')).map((document) => document.toJS() as { kind: string });
}

describe('the repository', () => {
  test('file names are kebab-case', () => {
    const wrong = sources.filter((path) => !/^([a-z0-9-]+\/)+[a-z0-9-]+(\.test)?\.(ts|mjs)$/.test(path));
    expect(wrong).toEqual([]);
  });

  test('nothing is left to do and no test is skipped or exclusive', () => {
    const open = /\b(TODO|FIXME|XXX)\b|\b(it|test|describe)\.(skip|only|todo)\b|\bx(it|describe|test)\(/;
    const found = sources.filter((path) => path !== 'test/repo/house.test.ts' && open.test(readFileSync(path, 'utf8')));
    expect(found).toEqual([]);
  });

  test('every kind that a person writes has a sample', () => {
    const kinds = tracked
      .filter((path) => /^examples\/.*\.yaml$/.test(path))
      .flatMap(samplesIn)
      .map(({ kind }) => kind);
    const missing = ALL_KINDS.filter(({ kind, inCategory }) => inCategory && !kinds.includes(kind)).map(
      ({ kind }) => kind,
    );
    expect(missing).toEqual([]);
  });

  test('exact versions only, so that two installs are the same', () => {
    const manifests = tracked
      .filter((path) => /(^|\/)package\.json$/.test(path))
      .map((path) => JSON.parse(readFileSync(path, 'utf8')) as Record<string, Record<string, string>>);
    const groups = ['dependencies', 'devDependencies', 'optionalDependencies'];
    const versions = manifests.flatMap((manifest) => groups.flatMap((group) => Object.entries(manifest[group] ?? {})));
    const ranges = versions.filter(([, version]) => !/^\d+\.\d+\.\d+(-[a-z]+\.\d+)?$/.test(version));
    expect(ranges).toEqual([]);
  });

  test('only src/kube imports values of the Kubernetes client', () => {
    const importers = sources.filter((path) =>
      /^import (?!type).*@kubernetes\/client-node/m.test(readFileSync(path, 'utf8')),
    );
    expect(importers.filter((path) => !path.startsWith('src/kube/'))).toEqual([]);
  });

  test('property tests have one seed: nothing imports fast-check but the builder that sets it', () => {
    const unseeded = sources.filter((path) =>
      /^(import|export|\}).* from 'fast-check'/m.test(readFileSync(path, 'utf8')),
    );
    expect(unseeded).toEqual(['test/builders/properties.ts']);
  });

  // The idle bound of a socket is the operating system's business, not a timer of ours.
  test('the clock is injected: nothing but the clock reads the time or sets a timer', () => {
    const timed = sources.filter(
      (path) =>
        path.startsWith('src/') &&
        !path.endsWith('.test.ts') &&
        path !== 'src/runtime/clock.ts' &&
        // A browser has the clock of its viewer.
        !path.startsWith('src/app/') &&
        /(?<!socket\.)\b(Date\.now\(\)|performance\.now\(\)|setTimeout\(|setInterval\(|new Date\(\))/.test(
          readFileSync(path, 'utf8'),
        ),
    );
    expect(timed).toEqual([]);
  });
});
