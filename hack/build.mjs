// Bundles the product into dist/ (or the folder that is named), one folder for each image and one for the command line.
import { build } from 'esbuild';
import { rmSync } from 'node:fs';
import { join } from 'node:path';
import { buildApp } from './build-app.mjs';
import { BUILD, BUNDLES, CLI_BUILD } from './build-options.mjs';

const [outdir = 'dist'] = process.argv.slice(2);

rmSync(outdir, { recursive: true, force: true });
await Promise.all([
  ...Object.entries(BUNDLES).map(([image, entryPoints]) =>
    build({ ...BUILD, entryPoints, outdir: join(outdir, image) }),
  ),
  build({ ...CLI_BUILD, outdir: join(outdir, 'kubectl-boxwright') }),
  buildApp(join(outdir, 'boxwright', 'app')),
]);
