/** The tools `grep` and `glob`. Neither follows a link, looks into `.git` or into the logs in `.runs`. */
import type { Dirent } from 'node:fs';
import { opendir, realpath, stat } from 'node:fs/promises';
import { join, relative } from 'node:path';
import { Readable } from 'node:stream';
import { ByteLines } from '../../net/lines.js';
import { FILES_SECONDS } from '../../protocol/tools-socket.js';
import type { ToolInput } from '../../protocol/tools-socket.js';
import { decodeWhole, cutUtf8 } from '../../runtime/text.js';
import { runChild } from './child-process.js';
import type { ToolContext } from './executor.js';
import { matchesPath, parsePattern } from './glob-pattern.js';
import { count, printable } from './plain-text.js';
import { ToolFailure } from './tool-failure.js';
import { displayPath, resolveInWorkspace } from './workspace-path.js';

const MAX_MATCHES = 100;
const MAX_MATCH_BYTES = 500;
const MAX_FOUND_FILES = 1000;
const MAX_VISITED = 200_000;
/** What is held of a line of grep: its path and as much text as is shown. */
const MAX_HELD_BYTES = 8 * 1024;
const SKIPPED = ['.git', '.runs'];

interface Match {
  path: string;
  line: number;
  text: string;
}

/**
 * Searches with the system's `grep -E`: unlike a regular expression in this process it can be stopped, and its time grows
 * with the text rather than with the cleverness of the expression.
 */
export async function grepFiles(input: ToolInput<'grep'>, context: ToolContext): Promise<{ text: string }> {
  const path = await resolveInWorkspace(context.workspace, input.path ?? '.');
  await stat(path);
  const matches: Match[] = [];
  let complaint = '';
  const enough = new AbortController();
  const lines = new ByteLines(MAX_HELD_BYTES);
  const onLine = (line: Buffer) => {
    const match = parseMatch(line);
    if (match === undefined) complaint ||= decodeWhole(line);
    else if (matches.length < MAX_MATCHES) matches.push(match);
    else enough.abort();
  };
  const end = await runChild({
    file: '/bin/grep',
    args: grepArguments(input, await displayPath(context.workspace, path)),
    cwd: await realpath(context.workspace),
    home: context.home,
    timeoutMs: FILES_SECONDS * 1000,
    clock: context.clock,
    signal: AbortSignal.any([context.signal, enough.signal]),
    onOutput: (chunk) => lines.read(chunk).forEach(onLine),
  });
  if (end.timedOut)
    throw new ToolFailure(`The search took longer than ${FILES_SECONDS} seconds; search in fewer files.`);
  if (end.exitCode === 2 && complaint !== '') throw new ToolFailure(`The search failed: ${cutUtf8(complaint, 200)}`);
  return { text: textOf(matches, enough.signal.aborted) };
}

/** By file, as `line:text`. */
function textOf(matches: readonly Match[], isCut: boolean): string {
  if (matches.length === 0) return '[nothing matches]';
  const lines: string[] = [];
  let file: string | undefined;
  for (const { path, line, text } of matches) {
    if (path !== file) lines.push(...(file === undefined ? [] : ['']), printable(path));
    file = path;
    lines.push(`${line}:${text}`);
  }
  return [...lines, ...(isCut ? [`[only the first ${MAX_MATCHES} matches are shown]`] : [])].join('\n');
}

function grepArguments(input: ToolInput<'grep'>, target: string): string[] {
  return [
    // -Z: a zero byte after the path, so that a colon in it does not matter.
    '-r',
    '-n',
    '-H',
    '-Z',
    '-I',
    '-s',
    '-E',
    '-D',
    'skip',
    '--color=never',
    ...SKIPPED.map((name) => `--exclude-dir=${name}`),
    ...(input.ignoreCase === true ? ['-i'] : []),
    ...(input.include === undefined ? [] : [`--include=${input.include}`]),
    '-e',
    input.pattern,
    '--',
    target,
  ];
}

function parseMatch(line: Buffer): Match | undefined {
  const zero = line.indexOf(0);
  const colon = line.indexOf(0x3a, zero);
  if (zero === -1 || colon === -1) return undefined;
  return {
    path: line.toString('utf8', 0, zero).replace(/^\.\//, ''),
    line: Number(line.toString('utf8', zero + 1, colon)),
    text: cutUtf8(decodeWhole(line.subarray(colon + 1)), MAX_MATCH_BYTES),
  };
}

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
