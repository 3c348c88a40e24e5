// What a run pod loads before its first model call: as JSON its files, bytes and npm packages, from the bundle alone; with
// `--measure` also CPU seconds and memory of starting it on this machine, the least of nine starts.
import { build } from 'esbuild';
import { spawnSync } from 'node:child_process';
import { mkdtempSync, rmSync } from 'node:fs';
import { join } from 'node:path';
import { BUILD, BUNDLES } from './build-options.mjs';

const STARTS = 9;
// The runner ends at once without its settings, after everything was loaded.
const REPORT = `data:text/javascript,process.once('exit', () => {
  const { userCPUTime, systemCPUTime, maxRSS } = process.resourceUsage();
  console.error('weight ' + JSON.stringify({ cpuSeconds: (userCPUTime + systemCPUTime) / 1e6, rssMiB: maxRSS / 1024 }));
});`;

const measure = process.argv.includes('--measure');
const outdir = mkdtempSync(join('node_modules', '.runner-weight-'));
try {
  const { metafile } = await build({
    ...BUILD,
    entryPoints: BUNDLES['boxwright-runner'],
    outdir,
    metafile: true,
    write: measure,
  });
  const weight = weigh(metafile);
  const starts = measure ? Array.from({ length: STARTS }, () => start(join(outdir, 'boxwright.mjs'))) : [];
  const least = (name) => Math.min(...starts.map((one) => one[name]));
  const cost = measure ? { cpuSeconds: least('cpuSeconds'), rssMiB: Math.round(least('rssMiB')) } : {};
  console.log(JSON.stringify({ ...weight, ...cost }));
} finally {
  rmSync(outdir, { recursive: true });
}

// The chunks that the runner imports, and those that they import; not what it loads when a run needs it.
function weigh({ outputs }) {
  const holds = (input) => (path) => Object.hasOwn(outputs[path].inputs, input);
  const paths = Object.keys(outputs);
  const loaded = new Set([paths.find(holds('src/runner-main.ts')), paths.find(holds('src/runner/main.ts'))]);
  for (const path of loaded) {
    for (const { path: next, kind } of outputs[path].imports) {
      if (kind === 'import-statement' && outputs[next] !== undefined) loaded.add(next);
    }
  }
  const inputs = [...loaded].flatMap((path) => Object.keys(outputs[path].inputs));
  const packages = inputs.flatMap((path) => /^node_modules\/((?:@[^/]+\/)?[^/]+)/.exec(path)?.[1] ?? []);
  return {
    files: loaded.size,
    bytes: [...loaded].reduce((sum, path) => sum + outputs[path].bytes, 0),
    packages: [...new Set(packages)].toSorted(),
  };
}

function start(entry) {
  const { stderr } = spawnSync(process.execPath, ['--import', REPORT, entry, 'runner'], {
    env: { PATH: process.env['PATH'] },
    encoding: 'utf8',
  });
  const found = /^weight (.*)$/m.exec(stderr)?.[1];
  if (found === undefined) throw new Error(`the runner did not start: ${stderr}`);
  return JSON.parse(found);
}
