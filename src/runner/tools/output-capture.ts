/** What is kept of a command's output: head and tail for the model, and all of it in a file when that is not enough. */
import { closeSync, constants, mkdirSync, openSync, realpathSync, writeSync } from 'node:fs';
import { join, relative } from 'node:path';
import { decodeWhole } from '../../runtime/text.js';
import { RUN_LOGS_DIR } from './run-logs.js';

/** Shown to the model: half head, half tail. */
export const MAX_SHOWN_BYTES = 30_000;
export const MAX_LOG_BYTES = 10 * 1024 * 1024;

export interface CapturedOutput {
  output: string;
  /** Set when `output` is cut. */
  outputBytes?: number;
  /** File with the whole output (its first 10 MiB), relative to the workspace; absent when it could not be written. */
  logPath?: string;
}

export class OutputCapture {
  readonly #log: OutputLog;
  readonly #half = MAX_SHOWN_BYTES / 2;
  #head = Buffer.alloc(0);
  #tail: Buffer[] = [];
  #tailBytes = 0;
  #bytes = 0;

  constructor(log: OutputLog) {
    this.#log = log;
  }

  get bytes(): number {
    return this.#bytes;
  }

  add(chunk: Buffer): void {
    if (this.#bytes + chunk.length > MAX_SHOWN_BYTES) {
      if (this.#bytes <= MAX_SHOWN_BYTES) for (const part of [this.#head, ...this.#tail]) this.#log.write(part);
      this.#log.write(chunk);
    }
    this.#bytes += chunk.length;
    const room = this.#half - this.#head.length;
    if (room > 0) this.#head = Buffer.concat([this.#head, chunk.subarray(0, room)]);
    this.#addTail(room > 0 ? chunk.subarray(room) : chunk);
  }

  /** Ends the capture and closes the file. */
  finish(): CapturedOutput {
    const logPath = this.#log.close();
    const tail = Buffer.concat(this.#tail).subarray(-this.#half);
    if (this.#bytes <= MAX_SHOWN_BYTES) return { output: Buffer.concat([this.#head, tail]).toString('utf8') };
    const left = this.#bytes - this.#head.length - tail.length;
    return {
      output: `${decodeWhole(this.#head)}\n[... ${left} bytes left out ...]\n${decodeWhole(tail)}`,
      outputBytes: this.#bytes,
      ...(logPath === undefined ? {} : { logPath }),
    };
  }

  #addTail(chunk: Buffer): void {
    if (chunk.length === 0) return;
    this.#tail.push(chunk);
    this.#tailBytes += chunk.length;
    // Joined only when twice the size: adding stays cheap for floods of small writes.
    if (this.#tailBytes < 2 * this.#half && this.#tail.length < 1024) return;
    const kept = Buffer.from(Buffer.concat(this.#tail).subarray(-this.#half));
    this.#tail = [kept];
    this.#tailBytes = kept.length;
  }
}

export interface OutputLog {
  write(chunk: Buffer): void;
  /** The file's path relative to the workspace, when anything was written. */
  close(): string | undefined;
}

/** `.runs/<run>/<name>` in the workspace, made at the first write. Never throws: a full disk must not fail a command. */
export function openOutputLog(workspace: string, run: string, name: string): OutputLog {
  let file: { descriptor: number; path: string } | undefined;
  let failed = false;
  let bytes = 0;
  return {
    write(chunk) {
      try {
        if (failed || bytes >= MAX_LOG_BYTES) return;
        file ??= createLog(workspace, run, name);
        bytes += writeSync(file.descriptor, chunk.subarray(0, MAX_LOG_BYTES - bytes));
      } catch {
        failed = true;
      }
    },
    close() {
      if (file === undefined) return undefined;
      closeSync(file.descriptor);
      return file.path;
    },
  };
}

function createLog(workspace: string, run: string, name: string): { descriptor: number; path: string } {
  const root = realpathSync(workspace);
  let directory = root;
  for (const part of [RUN_LOGS_DIR, run]) {
    directory = join(directory, part);
    mkdirSync(directory, { recursive: true });
    // The agent may have planted a link here: make and write only where the path really is what it says.
    if (realpathSync(directory) !== directory) throw new Error('the directory of the logs is a link');
  }
  const path = join(directory, name);
  const flags = constants.O_WRONLY | constants.O_CREAT | constants.O_EXCL | constants.O_NOFOLLOW;
  return { descriptor: openSync(path, flags, 0o644), path: relative(root, path) };
}
