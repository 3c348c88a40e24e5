/**
 * Programs for people with an MCP client in them, which are too large for every `npm ci` (see ../programs/package.json).
 * They are installed once a machine, beside the Kubernetes of the tests, and without their scripts: what they need comes
 * inside their packages.
 */
import { execFile } from 'node:child_process';
import { createHash } from 'node:crypto';
import { access, copyFile, mkdir, mkdtemp, readFile, rename, rm } from 'node:fs/promises';
import { homedir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';

const run = promisify(execFile);
const SOURCE = fileURLToPath(new URL('../programs/', import.meta.url));
const FILES = ['package.json', 'package-lock.json'];

/** The folder node_modules with the programs of the lock file. */
export async function installPrograms(): Promise<string> {
  const cache = process.env['BOXWRIGHT_CACHE'] ?? join(homedir(), '.cache/boxwright');
  const hash = createHash('sha256');
  for (const file of FILES) hash.update(await readFile(join(SOURCE, file)));
  const folder = join(cache, `client-programs-${hash.digest('hex').slice(0, 16)}`);
  if (!(await exists(folder))) await install(cache, folder);
  return join(folder, 'node_modules');
}

/** The folder appears complete or not at all. */
async function install(cache: string, folder: string): Promise<void> {
  await mkdir(cache, { recursive: true });
  const unfinished = await mkdtemp(`${folder}.`);
  for (const file of FILES) await copyFile(join(SOURCE, file), join(unfinished, file));
  // Not `ci`: it refuses a lock file without the packages of every platform that there is.
  await run('npm', ['install', '--no-save', '--ignore-scripts', '--no-audit', '--no-fund'], { cwd: unfinished });
  await rename(unfinished, folder).catch(async (error: unknown) => {
    // Somebody else was faster.
    await rm(unfinished, { recursive: true });
    if (!(await exists(folder))) throw error;
  });
}

function exists(path: string): Promise<boolean> {
  return access(path).then(
    () => true,
    () => false,
  );
}
