/** The tools `read`, `write`, `edit` and `list`: text files of the workspace. */
import { constants } from 'node:fs';
import { lstat, mkdir, open, opendir, stat } from 'node:fs/promises';
import type { FileHandle } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import type { ToolInput } from '../../protocol/tools-socket.js';
import { cutMiddle, decodeWhole } from '../../runtime/text.js';
import type { ToolContext } from './executor.js';
import { ToolFailure } from './tool-failure.js';
import { displayPath, resolveInWorkspace } from './workspace-path.js';

const MAX_READ_LINES = 2000;
const MAX_READ_BYTES = 50 * 1024;
const MAX_LINE_BYTES = 4 * 1024;
/** How much of a file is searched for the line to begin with. */
const MAX_SCANNED_BYTES = 256 * 1024 * 1024;
const MAX_EDIT_BYTES = 5 * 1024 * 1024;
const MAX_ENTRIES = 1000;

type Context = Pick<ToolContext, 'workspace' | 'signal'>;
type Result = Record<string, unknown>;

/** Opens what must be a regular file: a link in the last part or a pipe of the agent's making is refused, not followed or waited for. */
async function openRegular(path: string, flags: number): Promise<FileHandle> {
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

/** Reads lines from `offset` on; `nextOffset` says where to go on. */
export async function readTextFile(input: ToolInput<'read'>, context: Context): Promise<Result> {
  const path = await resolveInWorkspace(context.workspace, input.path);
  const handle = await openRegular(path, constants.O_RDONLY);
  try {
    const first = input.offset ?? 1;
    const { lines, more } = await collectLines(handle, { first, limit: input.limit ?? MAX_READ_LINES, ...context });
    return {
      path: await displayPath(context.workspace, path),
      firstLine: first,
      lines: lines.length,
      content: lines.join('\n'),
      ...(more ? { nextOffset: first + lines.length } : {}),
    };
  } finally {
    await handle.close();
  }
}

interface LineRange {
  first: number;
  limit: number;
  signal: AbortSignal;
}

async function collectLines(
  handle: FileHandle,
  { first, limit, signal }: LineRange,
): Promise<{ lines: string[]; more: boolean }> {
  const lines: string[] = [];
  let number = 1;
  let shown = 0;
  let scanned = 0;
  let rest = Buffer.alloc(0);
  /** False when the line no longer fits. */
  const take = (line: Buffer): boolean => {
    if (number >= first) {
      const text = cutMiddle(decodeWhole(line), MAX_LINE_BYTES);
      shown += Buffer.byteLength(text) + 1;
      if (lines.length >= limit || (lines.length > 0 && shown > MAX_READ_BYTES)) return false;
      lines.push(text);
    }
    number += 1;
    return true;
  };
  const buffer = Buffer.allocUnsafe(64 * 1024);
  for (;;) {
    const { bytesRead } = await handle.read(buffer, 0, buffer.length, null);
    if (bytesRead === 0) return { lines, more: rest.length > 0 && !take(rest) };
    scanned += bytesRead;
    if (signal.aborted || scanned > MAX_SCANNED_BYTES)
      throw new ToolFailure('The file is too large to be read this far.');
    const chunk = buffer.subarray(0, bytesRead);
    if (chunk.includes(0)) throw new ToolFailure('The file is not text.');
    let start = 0;
    for (let end = chunk.indexOf(10); end !== -1; end = chunk.indexOf(10, start)) {
      if (!take(Buffer.concat([rest, chunk.subarray(start, end)]))) return { lines, more: true };
      rest = Buffer.alloc(0);
      start = end + 1;
    }
    // A line without an end is cut anyway: its middle need not be held.
    if (rest.length < MAX_READ_BYTES) rest = Buffer.concat([rest, chunk.subarray(start)]);
  }
}

/** Writes a whole file. */
export async function writeTextFile(input: ToolInput<'write'>, context: Context): Promise<Result> {
  const path = await resolveInWorkspace(context.workspace, input.path);
  await mkdir(dirname(path), { recursive: true });
  await overwrite(path, input.content);
  return { path: await displayPath(context.workspace, path), bytes: Buffer.byteLength(input.content) };
}

async function overwrite(path: string, content: string): Promise<void> {
  const handle = await openRegular(path, constants.O_WRONLY | constants.O_CREAT);
  try {
    await handle.truncate(0);
    await handle.writeFile(content);
  } finally {
    await handle.close();
  }
}

/** Replaces text that occurs exactly once, or everywhere. */
export async function editFile(input: ToolInput<'edit'>, context: Context): Promise<Result> {
  const path = await resolveInWorkspace(context.workspace, input.path);
  const before = await readForEdit(path);
  const found = before.split(input.oldText).length - 1;
  if (found === 0)
    throw new ToolFailure('oldText does not occur in the file; read it again and copy the text exactly.');
  if (found > 1 && input.replaceAll !== true) {
    throw new ToolFailure(`oldText occurs ${found} times; give more of the text around it, or set replaceAll.`);
  }
  if (before.length + found * (input.newText.length - input.oldText.length) > MAX_EDIT_BYTES) throw tooLarge();
  await overwrite(path, before.split(input.oldText).join(input.newText));
  return { path: await displayPath(context.workspace, path), replaced: found };
}

async function readForEdit(path: string): Promise<string> {
  const handle = await openRegular(path, constants.O_RDONLY);
  try {
    if ((await handle.stat()).size > MAX_EDIT_BYTES) throw tooLarge();
    return decodeText(await handle.readFile());
  } finally {
    await handle.close();
  }
}

/** Text that can be written back without a loss. */
function decodeText(bytes: Buffer): string {
  try {
    return new TextDecoder('utf-8', { fatal: true, ignoreBOM: true }).decode(bytes);
  } catch {
    throw new ToolFailure('The file is not text.');
  }
}

function tooLarge(): ToolFailure {
  return new ToolFailure('The file is too large to be edited (5 MiB).');
}

/** Entries of a directory, by name. */
export async function listDirectory(input: ToolInput<'list'>, context: Context): Promise<Result> {
  const path = await resolveInWorkspace(context.workspace, input.path ?? '.');
  if (!(await stat(path)).isDirectory()) throw new ToolFailure('The path is not a directory.');
  const names: string[] = [];
  let truncated = false;
  for await (const entry of await opendir(path)) {
    truncated = names.length >= MAX_ENTRIES;
    if (truncated) break;
    names.push(entry.name);
  }
  const entries = [];
  for (const name of names.sort()) {
    const info = await lstat(join(path, name)).catch(() => undefined);
    if (info !== undefined) entries.push({ name, type: typeOf(info), size: info.size });
  }
  return { path: await displayPath(context.workspace, path), entries, ...(truncated ? { truncated } : {}) };
}

function typeOf(info: { isFile(): boolean; isDirectory(): boolean; isSymbolicLink(): boolean }): string {
  if (info.isFile()) return 'file';
  if (info.isDirectory()) return 'directory';
  return info.isSymbolicLink() ? 'link' : 'other';
}
