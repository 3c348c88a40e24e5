// How the product is bundled: a folder for each image with boxwright.mjs and its chunks, libraries included. An image holds
// nothing else of ours and nothing of the others, and a run pod starts faster from few files.
export const BUNDLES = {
  boxwright: { boxwright: 'src/main.ts' },
  'boxwright-runner': { boxwright: 'src/runner-main.ts' },
  // The second is loaded as a thread (src/runner/tools/web/page-reader.ts).
  'boxwright-tools': { boxwright: 'src/tools-main.ts', 'page-worker': 'src/runner/tools/web/page-worker.ts' },
};

// A release names its version and its commit (src/config/version.ts); other builds are the same for every commit, so that an
// unchanged tree gives unchanged images.
const { VERSION, REVISION } = process.env;

export const BUILD = {
  define: {
    ...(VERSION ? { BUILD_VERSION: JSON.stringify(VERSION) } : {}),
    ...(REVISION ? { BUILD_REVISION: JSON.stringify(REVISION) } : {}),
  },
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
};

// The command line of people: one file, which kubectl finds on PATH as kubectl-boxwright. Its source is in no image.
export const CLI_BUILD = {
  ...BUILD,
  entryPoints: { 'kubectl-boxwright': 'src/cli/main.ts' },
  splitting: false,
  banner: { js: `#!/usr/bin/env node\n${BUILD.banner.js}` },
};
