/** Where a path of the model leads: inside the workspace, also after every symbolic link, or nowhere. */
import { realpath } from 'node:fs/promises';
import { dirname, relative, resolve, sep } from 'node:path';
import { ToolFailure } from './tool-failure.js';

/**
 * The real path of `path`, which is relative to the workspace or absolute in it. What does not exist yet is resolved
 * through its nearest parent that does. Throws {@link ToolFailure} for everything outside.
 */
export async function resolveInWorkspace(workspace: string, path: string): Promise<string> {
  if (path.includes('\0')) throw new ToolFailure('A path cannot contain a zero byte.');
  const root = await realpath(workspace);
  const wanted = resolve(workspace, path);
  const lexical = isInside(workspace, wanted) ? resolve(root, relative(workspace, wanted)) : wanted;
  if (!isInside(root, lexical)) throw outside();
  const real = await realPathOfNearest(lexical);
  if (!isInside(root, real)) throw outside();
  return real;
}

/** The path as it is shown to the model: relative to the workspace. */
export async function displayPath(workspace: string, real: string): Promise<string> {
  return relative(await realpath(workspace), real) || '.';
}

function outside(): ToolFailure {
  return new ToolFailure('The path leads out of the workspace; only files in it can be used.');
}

function isInside(root: string, path: string): boolean {
  return path === root || path.startsWith(root.endsWith(sep) ? root : `${root}${sep}`);
}

async function realPathOfNearest(path: string): Promise<string> {
  try {
    return await realpath(path);
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== 'ENOENT') throw error;
  }
  const parent = dirname(path);
  if (parent === path) return path;
  // A dangling link ends here too: what is opened later never follows a link in its last part.
  return resolve(await realPathOfNearest(parent), path.slice(parent.length).replace(/^\/+/, ''));
}
