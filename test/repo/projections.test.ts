/** What processes keep of a kind stands in one file of src/projections, under names that nothing else has. */
import { execFileSync } from 'node:child_process';
import { existsSync, readFileSync } from 'node:fs';

const sources = execFileSync('git', ['ls-files', '-co', '--exclude-standard', 'src'], { encoding: 'utf8' })
  .split('\n')
  .filter((path) => path.endsWith('.ts') && existsSync(path));

const EXPORTED = /^export (?:async )?(?:function|const|class|interface|type) (\w+)/gm;

function exportsOf(path: string): string[] {
  return [...readFileSync(path, 'utf8').matchAll(EXPORTED)].map(([, name = '']) => name);
}

test('no two projections, informers or indexes have one name, in the whole of src', () => {
  const homes = new Map<string, string[]>();
  for (const path of sources) {
    for (const name of exportsOf(path)) homes.set(name, [...(homes.get(name) ?? []), path]);
  }
  const doubled = [...homes].filter(
    ([, paths]) => paths.length > 1 && paths.some((path) => path.startsWith('src/projections/')),
  );
  expect(homes.get('projectApiRun')).toEqual(['src/projections/agent-run.ts']);
  expect(doubled).toEqual([]);
});

test('a projection is called by its process and kind: nothing is a View', () => {
  const found = sources.flatMap((path) =>
    exportsOf(path)
      .filter((name) => name.endsWith('View'))
      .map((name) => `${path}: ${name}`),
  );
  expect(found).toEqual([]);
});
