/** The tools `read`, `write` and `list`: text files of the workspace. */
import { constants } from 'node:fs';
import type { Stats } from 'node:fs';
import { chmod, lstat, mkdir, open, opendir, stat } from 'node:fs/promises';
import type { FileHandle } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import { READ_BYTES, SKILLS_DIR } from '../../protocol/tools-socket.js';
import type { ToolInput } from '../../protocol/tools-socket.js';
import { cutMiddle, decodeWhole } from '../../runtime/text.js';
import type { ToolContext } from './executor.js';
import { count, printable } from './plain-text.js';
import { ToolFailure } from './tool-failure.js';
import { displayPath, resolveInWorkspace } from './workspace-path.js';

const MAX_READ_LINES = 2000;
const MAX_READ_BYTES = 50 * 1024;
const MAX_LINE_BYTES = 4 * 1024;
/** How much of a file is searched for the line to begin with. */
const MAX_SCANNED_BYTES = 256 * 1024 * 1024;
const MAX_ENTRIES = 1000;

type Context = Pick<ToolContext, 'workspace' | 'signal'>;
interface Result extends Record<string, unknown> {
  text: string;
}

/** Opens what must be a regular file: a link in the last part or a pipe of the agent's making is refused, not followed or waited for. */
export async function openRegular(path: string, flags: number): Promise<FileHandle> {
  const handle = await open(path, flags | constants.O_NOFOLLOW | constants.O_NONBLOCK, 0o644).catch(
    (error: unknown) => {
      const { code } = error as NodeJS.ErrnoException;
      if (code === 'ELOOP') throw new ToolFailure('The path is a link that leads nowhere.');
      if (code === 'ENXIO') throw new ToolFailure('The path is not a regular file.');
      throw error;
    },
  );
  const info = await handle.stat();
  if (info.isFile()) return handle;
  await handle.close();
  throw new ToolFailure(info.isDirectory() ? 'The path is a directory.' : 'The path is not a regular file.');
}

/** Lines from `offset` on, each with its number; the last line says where to go on. */
export async function readTextFile(input: ToolInput<'read'>, context: Context): Promise<Result> {
  const handle = await openRegular(await resolveInWorkspace(context.workspace, input.path), constants.O_RDONLY);
  try {
    const first = input.offset ?? 1;
    const { lines, total } = await collectLines(handle, {
      first,
      limit: input.limit ?? MAX_READ_LINES,
      signal: context.signal,
    });
    const next = first + lines.length;
    const numbered = lines.map((line, index) => `${first + index}\t${line}`);
    return { text: [...numbered, ...noteOn({ first, next, total })].join('\n') };
  } finally {
    await handle.close();
  }
}

/** What the lines themselves do not say. */
function noteOn({ first, next, total }: { first: number; next: number; total: number }): string[] {
  if (next <= total) return [`[${count(total - next + 1, 'more line')}; read on with offset ${next}]`];
  if (next > first) return [];
  return [total === 0 ? '[the file is empty]' : `[the file has ${count(total, 'line')}]`];
}

interface LineRange {
  first: number;
  limit: number;
  signal: AbortSignal;
}

/** The lines of a range that fit, and how many the file has. */
async function collectLines(
  handle: FileHandle,
  { first, limit, signal }: LineRange,
): Promise<{ lines: string[]; total: number }> {
  const lines: string[] = [];
  let total = 0;
  let shown = 0;
  let isFull = false;
  let scanned = 0;
  let rest = Buffer.alloc(0);
  const take = (line: Buffer): void => {
    total += 1;
    if (total < first || isFull) return;
    const text = cutMiddle(decodeWhole(line), MAX_LINE_BYTES);
    shown += Buffer.byteLength(text) + 1;
    isFull = lines.length >= limit || (lines.length > 0 && shown > MAX_READ_BYTES);
    if (!isFull) lines.push(text);
  };
  const buffer = Buffer.allocUnsafe(64 * 1024);
  for (;;) {
    const { bytesRead } = await handle.read(buffer, 0, buffer.length, null);
    if (bytesRead === 0) break;
    scanned += bytesRead;
    if (signal.aborted || scanned > MAX_SCANNED_BYTES) throw new ToolFailure('The file is too large to be read.');
    const chunk = buffer.subarray(0, bytesRead);
    if (chunk.includes(0)) throw new ToolFailure('The file is not text.');
    let start = 0;
    for (let end = chunk.indexOf(10); end !== -1; end = chunk.indexOf(10, start)) {
      take(rest.length === 0 ? chunk.subarray(start, end) : Buffer.concat([rest, chunk.subarray(start, end)]));
      rest = Buffer.alloc(0);
      start = end + 1;
    }
    // A line without an end is cut anyway: its middle need not be held.
    if (rest.length < MAX_READ_BYTES) rest = Buffer.concat([rest, chunk.subarray(start)]);
  }
  if (rest.length > 0) take(rest);
  return { lines, total };
}

/** Writes a whole file. */
export async function writeTextFile(input: ToolInput<'write'>, context: Context): Promise<Result> {
  const path = await resolveInWorkspace(context.workspace, input.path);
  await mkdir(dirname(path), { recursive: true });
  await overwrite(path, input.content);
  const bytes = count(Buffer.byteLength(input.content), 'byte');
  return { text: `Wrote ${bytes} to ${await displayPath(context.workspace, path)}.` };
}

/** Writes a file of a skill; a script can be run. */
export async function writeSkillFile(
  { slug, path: name, content }: ToolInput<'put_skill_file'>,
  context: Pick<ToolContext, 'workspace'>,
): Promise<Result> {
  const directory = join(SKILLS_DIR, slug);
  const path = join(directory, name);
  if (!path.startsWith(`${directory}/`)) throw new ToolFailure('The path leads out of the skill.');
  const real = await resolveInWorkspace(context.workspace, path);
  await mkdir(dirname(real), { recursive: true });
  const bytes = Buffer.from(content, 'base64');
  await overwrite(real, bytes);
  if (bytes.subarray(0, 2).toString() === '#!') await chmod(real, 0o755);
  return { text: `Wrote ${path}.` };
}

/** A piece of a file as it is, in base64, and the size of all of it. */
export async function readBytes(
  { path, offset }: ToolInput<'read_bytes'>,
  context: Pick<ToolContext, 'workspace'>,
): Promise<{ content: string; bytes: number }> {
  const handle = await openRegular(await resolveInWorkspace(context.workspace, path), constants.O_RDONLY);
  try {
    const { size } = await handle.stat();
    const buffer = Buffer.alloc(Math.max(0, Math.min(READ_BYTES, size - offset)));
    let length = 0;
    while (length < buffer.length) {
      const { bytesRead } = await handle.read(buffer, length, buffer.length - length, offset + length);
      if (bytesRead === 0) break;
      length += bytesRead;
    }
    return { content: buffer.toString('base64', 0, length), bytes: size };
  } finally {
    await handle.close();
  }
}

/** Puts a text in the place of what a file holds. */
export async function overwrite(path: string, content: string | Buffer): Promise<void> {
  const handle = await openRegular(path, constants.O_WRONLY | constants.O_CREAT);
  try {
    await handle.truncate(0);
    await handle.writeFile(content);
  } finally {
    await handle.close();
  }
}

/** Entries of a directory, by name: those with `/` are directories, those with `@` links. */
export async function listDirectory(input: ToolInput<'list'>, context: Context): Promise<Result> {
  const path = await resolveInWorkspace(context.workspace, input.path ?? '.');
  if (!(await stat(path)).isDirectory()) throw new ToolFailure('The path is not a directory.');
  const names: string[] = [];
  let isCut = false;
  for await (const entry of await opendir(path)) {
    isCut = names.length >= MAX_ENTRIES;
    if (isCut) break;
    names.push(entry.name);
  }
  const lines: string[] = [];
  for (const name of names.sort()) {
    const info = await lstat(join(path, name)).catch(() => undefined);
    if (info !== undefined) lines.push(entryLine(printable(name), info));
  }
  if (lines.length === 0) return { text: '[the directory is empty]' };
  return { text: [...lines, ...(isCut ? [`[only ${MAX_ENTRIES} entries are shown]`] : [])].join('\n') };
}

type EntryInfo = Pick<Stats, 'isFile' | 'isDirectory' | 'isSymbolicLink' | 'size'>;

function entryLine(name: string, info: EntryInfo): string {
  if (info.isDirectory()) return `${name}/`;
  if (info.isFile()) return `${name}\t${info.size}`;
  return info.isSymbolicLink() ? `${name}@` : `${name}\t(no file)`;
}
