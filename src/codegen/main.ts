/**
 * Writes every generated file of the repository; `make verify` runs it and fails on a difference.
 * Run from the root of the repository.
 */
import { existsSync, mkdirSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { generatedFiles } from './generated-files.js';

/** Folders in which every file is generated; leftovers of renamed kinds are removed. */
const OWNED_FOLDERS = ['crds', 'charts/boxwright/files/crds'];

const files = generatedFiles();
for (const folder of OWNED_FOLDERS) {
  mkdirSync(folder, { recursive: true });
  for (const name of readdirSync(folder)) {
    if (!files.has(join(folder, name))) rmSync(join(folder, name));
  }
}
for (const [path, content] of files) {
  // A file that is right is left alone: whoever reads it meanwhile never sees half of it.
  if (existsSync(path) && readFileSync(path, 'utf8') === content) continue;
  mkdirSync(dirname(path), { recursive: true });
  writeFileSync(path, content);
}
