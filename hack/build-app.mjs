// Bundles the web application: index.html, and assets whose names carry the hash of their content.
import { build } from 'esbuild';
import { mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { basename, join } from 'node:path';

/** Writes it to a folder. */
export async function buildApp(outdir) {
  const assets = join(outdir, 'assets');
  mkdirSync(assets, { recursive: true });
  const { metafile } = await build({
    entryPoints: { app: 'src/app/main.tsx', icon: 'src/app/icon.svg' },
    outdir: assets,
    entryNames: '[name]-[hash]',
    loader: { '.svg': 'copy' },
    bundle: true,
    format: 'esm',
    target: ['chrome120', 'firefox121', 'safari17'],
    jsx: 'automatic',
    minify: true,
    define: { 'process.env.NODE_ENV': '"production"' },
    legalComments: 'none',
    metafile: true,
    logLevel: 'warning',
  });
  const file = (pattern) => {
    const found = Object.keys(metafile.outputs).find((path) => pattern.test(basename(path)));
    return `assets/${basename(found)}`;
  };
  const page = readFileSync('src/app/index.html', 'utf8')
    .replace('ICON_FILE', file(/^icon-.*\.svg$/))
    .replace('STYLE_FILE', file(/^app-.*\.css$/))
    .replace('SCRIPT_FILE', file(/^app-.*\.js$/));
  writeFileSync(join(outdir, 'index.html'), page);
}
