// Bundles the product into dist/ (or the folder that is named): boxwright.mjs and its chunks, libraries included. The image holds nothing else of ours,
// and a run pod starts faster from few files.
import { build } from 'esbuild';
import { rmSync } from 'node:fs';

const [outdir = 'dist'] = process.argv.slice(2);

rmSync(outdir, { recursive: true, force: true });
await build({
  // The second is loaded as a thread (src/runner/tools/web/page-reader.ts).
  entryPoints: { boxwright: 'src/main.ts', 'page-worker': 'src/runner/tools/web/page-worker.ts' },
  outdir,
  outExtension: { '.js': '.mjs' },
  bundle: true,
  // Only in the image with a browser, and loaded only by a call that needs it.
  external: ['playwright-core'],
  // Each process loads only its own code: the runner must not pay for express or the Kubernetes client.
  splitting: true,
  chunkNames: 'chunks/[name]-[hash]',
  platform: 'node',
  format: 'esm',
  target: 'node24',
  minify: true,
  keepNames: true,
  sourcemap: false,
  legalComments: 'none',
  // CommonJS dependencies inside an ESM bundle call require().
  banner: {
    js: "import{createRequire as __createRequire}from'node:module';const require=__createRequire(import.meta.url);",
  },
  logLevel: 'warning',
});
