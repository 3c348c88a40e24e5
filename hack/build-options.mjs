// How the product is bundled: boxwright.mjs and its chunks, libraries included. The image holds nothing else of ours, and a
// run pod starts faster from few files.
export const BUILD = {
  // The second is loaded as a thread (src/runner/tools/web/page-reader.ts).
  entryPoints: { boxwright: 'src/main.ts', 'page-worker': 'src/runner/tools/web/page-worker.ts' },
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
