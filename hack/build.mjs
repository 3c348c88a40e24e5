// Bundles the product into dist/ (or the folder that is named).
import { build } from 'esbuild';
import { rmSync } from 'node:fs';
import { BUILD } from './build-options.mjs';

const [outdir = 'dist'] = process.argv.slice(2);

rmSync(outdir, { recursive: true, force: true });
await build({ ...BUILD, outdir });
