import { execFileSync } from 'node:child_process';
import { mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { build } from 'esbuild';
import { PRODUCT_VERSION } from './version.js';

test('the version that clients see is that of package.json', () => {
  const { version } = JSON.parse(readFileSync('package.json', 'utf8')) as { version: string };
  expect(PRODUCT_VERSION).toBe(version);
});

test('a build with a version and a revision says so, and one without says dev', async () => {
  const folder = mkdtempSync(join(tmpdir(), 'boxwright-version-'));
  const says = async (env: Record<string, string>) => {
    const program = join(folder, 'boxwright.mjs');
    const options = `import('${process.cwd()}/hack/build-options.mjs').then(({BUILD}) => console.log(JSON.stringify(BUILD.define)))`;
    const run = (args: string[]) =>
      execFileSync(process.execPath, args, { encoding: 'utf8', env: { ...env, PATH: process.env['PATH'] } }).trim();
    const define = JSON.parse(run(['--eval', options])) as Record<string, string>;
    await build({
      entryPoints: ['src/start-process.ts'],
      bundle: true,
      format: 'esm',
      platform: 'node',
      outfile: program,
      define,
    });
    return run([
      '--input-type=module',
      '--eval',
      `process.argv[2] = '--version'; (await import('${program}')).startProcess({})`,
      'x',
      'x',
    ]);
  };
  try {
    expect(await says({ VERSION: '1.2.3', REVISION: 'abcdef' })).toBe('boxwright 1.2.3 (abcdef)');
    expect(await says({})).toBe(`boxwright ${PRODUCT_VERSION} (dev)`);
  } finally {
    rmSync(folder, { recursive: true });
  }
});
