/** The tool `glob`. It follows no link, and looks neither into `.git` nor into the logs in `.runs`. */
import type { Dirent } from 'node:fs';
import { opendir } from 'node:fs/promises';
import { join, relative } from 'node:path';
import { Readable } from 'node:stream';
import type { ToolInput } from '../../protocol/tools-socket.js';
import type { ToolContext } from './executor.js';
import { matchesPath, parsePattern } from './glob-pattern.js';
import { count, printable } from './plain-text.js';
import { displayPath, resolveInWorkspace } from './workspace-path.js';

const MAX_FOUND_FILES = 1000;
const MAX_VISITED = 200_000;
/** Directories that a search passes over. */
export const SKIPPED = ['.git', '.runs'];

/** Finds files by pattern, relative to `path`; sorted. */
export async function globFiles(input: ToolInput<'glob'>, context: ToolContext): Promise<{ text: string }> {
  const root = await resolveInWorkspace(context.workspace, input.path ?? '.');
  const alternatives = parsePattern(input.pattern);
  const files: string[] = [];
  const directories = [root];
  let visited = 0;
  let truncated = false;
  while (directories.length > 0 && !truncated && !context.signal.aborted) {
    const directory = directories.pop() as string;
    for await (const entry of directory === root ? await opendir(root) : await openIfPossible(directory)) {
      visited += 1;
      truncated = visited > MAX_VISITED || files.length >= MAX_FOUND_FILES;
      if (truncated) break;
      const path = join(directory, entry.name);
      if (entry.isDirectory() && !SKIPPED.includes(entry.name)) directories.push(path);
      else if (entry.isFile() && matchesPath(alternatives, relative(root, path))) files.push(path);
    }
  }
  const shown = await Promise.all(files.sort().map((file) => displayPath(context.workspace, file)));
  if (shown.length === 0) return { text: '[no file matches]' };
  const note = truncated ? [`[the search stopped after ${count(shown.length, 'file')}; narrow the pattern]`] : [];
  return { text: [...shown.map(printable), ...note].join('\n') };
}

/** A directory that is gone meanwhile, or closed to the tools, has no files to find. */
async function openIfPossible(directory: string): Promise<AsyncIterable<Dirent>> {
  try {
    return await opendir(directory);
  } catch {
    return Readable.from([]);
  }
}
