/**
 * The tool `grep`, with ripgrep: unlike a regular expression in this process it can be stopped. It follows no link, and looks
 * neither into `.git` nor into the logs in `.runs`.
 */
import { realpath, stat } from 'node:fs/promises';
import { ByteLines } from '../../net/lines.js';
import { FILES_SECONDS } from '../../protocol/tools-socket.js';
import type { ToolInput } from '../../protocol/tools-socket.js';
import { cutUtf8, decodeWhole } from '../../runtime/text.js';
import { runChild } from './child-process.js';
import type { ToolContext } from './executor.js';
import { SKIPPED } from './glob.js';
import { printable } from './plain-text.js';
import { ToolFailure } from './tool-failure.js';
import { displayPath, resolveInWorkspace } from './workspace-path.js';

const MAX_MATCHES = 100;
const MAX_LINE_BYTES = 500;
/** Of a result: matches with much context are fewer. */
const MAX_SHOWN_BYTES = 40_000;
/** What is held of a line of ripgrep: its path and as much text as is shown. */
const MAX_HELD_BYTES = 8 * 1024;
/** Only the slower engine looks around or back; nothing bounds its time but the limit of the tool. */
const NEEDS_PCRE2 = /\(\?<?[=!]|\\[1-9]/;

/** Lines that match, by file, as `line:text`, those around them as `line-text`. Files come in the order of their paths. */
export async function grepFiles(input: ToolInput<'grep'>, context: ToolContext): Promise<{ text: string }> {
  const path = await resolveInWorkspace(context.workspace, input.path ?? '.');
  const info = await stat(path);
  if (!info.isFile() && !info.isDirectory()) throw new ToolFailure('The path is neither a file nor a directory.');
  const found = new FoundLines();
  const lines = new ByteLines(MAX_HELD_BYTES);
  const enough = new AbortController();
  const end = await runChild({
    file: context.ripgrep,
    args: searchArguments(input, await displayPath(context.workspace, path)),
    cwd: await realpath(context.workspace),
    home: context.home,
    timeoutMs: FILES_SECONDS * 1000,
    clock: context.clock,
    signal: AbortSignal.any([context.signal, enough.signal]),
    onOutput: (chunk) => {
      for (const line of lines.read(chunk)) found.add(line);
      if (found.isCut) enough.abort();
    },
  });
  if (end.timedOut)
    throw new ToolFailure(`The search took longer than ${FILES_SECONDS} seconds; search in fewer files.`);
  if (end.exitCode === 2 && found.complaint !== '') throw new ToolFailure(`The search failed: ${found.complaint}`);
  return { text: found.text() };
}

function searchArguments(input: ToolInput<'grep'>, target: string): string[] {
  return [
    '--no-config',
    '--line-number',
    '--with-filename',
    '--no-heading',
    // A zero byte after the path, so that a colon in it does not matter.
    '--null',
    '--color=never',
    '--no-context-separator',
    '--no-messages',
    '--sort=path',
    '--hidden',
    // A .gitignore counts also where no repository was made yet.
    '--no-require-git',
    '--no-ignore-global',
    ...(input.ignored === true ? ['--no-ignore'] : []),
    ...(input.ignoreCase === true ? ['--ignore-case'] : []),
    ...(input.context === undefined ? [] : [`--context=${input.context}`]),
    ...(input.type === undefined ? [] : [`--type=${input.type}`]),
    ...(input.include === undefined ? [] : [`--glob=${input.include}`]),
    ...SKIPPED.map((name) => `--glob=!${name}`),
    ...(NEEDS_PCRE2.test(input.pattern) ? ['--pcre2'] : []),
    `--regexp=${input.pattern}`,
    '--',
    target,
  ];
}

/** What ripgrep writes, as the lines of a result. */
class FoundLines {
  /** There was more than is shown. */
  isCut = false;
  #complaint = '';
  #shown: string[] = [];
  #bytes = 0;
  #matches = 0;
  #file: string | undefined;

  /** What is wrong with the call, in the words of ripgrep. */
  get complaint(): string {
    return cutUtf8(this.#complaint.replace(/^rg: /, '').trim(), 400);
  }

  add(bytes: Buffer): void {
    if (this.isCut) return;
    const zero = bytes.indexOf(0);
    const [, number = '', sign] = /^(\d+)([:-])/.exec(bytes.toString('latin1', zero + 1, zero + 32)) ?? [];
    if (zero === -1 || sign === undefined) {
      this.#complaint += `${decodeWhole(bytes)}\n`;
      return;
    }
    if (sign === ':') this.#matches += 1;
    const path = bytes.toString('utf8', 0, zero).replace(/^\.\//, '');
    const text = cutUtf8(decodeWhole(bytes.subarray(zero + 1 + number.length + 1)), MAX_LINE_BYTES);
    const lines = [...this.#before(path), `${number}${sign}${text}`];
    this.#bytes += lines.reduce((sum, line) => sum + Buffer.byteLength(line) + 1, 0);
    this.isCut = this.#matches > MAX_MATCHES || this.#bytes > MAX_SHOWN_BYTES;
    if (this.isCut) return;
    this.#shown.push(...lines);
    this.#file = path;
  }

  /** The name of a file before its first line. */
  #before(path: string): string[] {
    if (this.#file === path) return [];
    return [...(this.#file === undefined ? [] : ['']), printable(path)];
  }

  text(): string {
    if (this.#shown.length === 0) return '[nothing matches]';
    return [...this.#shown, ...(this.isCut ? ['[there are more matches; search in fewer files]'] : [])].join('\n');
  }
}
