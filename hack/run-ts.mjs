// Runs a TypeScript entry point of this repository: bundles it in memory with esbuild and imports the result.
// Used by generators; the product itself is built by hack/build.mjs.
import { build } from 'esbuild';
import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { pathToFileURL } from 'node:url';

const [entry] = process.argv.slice(2);
const result = await build({
  entryPoints: [entry],
  bundle: true,
  platform: 'node',
  format: 'esm',
  target: 'node24',
  packages: 'external',
  write: false,
});
// Inside node_modules, so that external packages resolve from there.
const directory = await mkdtemp(join('node_modules', '.run-ts-'));
try {
  const file = join(directory, 'main.mjs');
  await writeFile(file, result.outputFiles[0].text);
  await import(pathToFileURL(file).href);
} finally {
  await rm(directory, { recursive: true });
}
