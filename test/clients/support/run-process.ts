/** Runs a command-line client to its end, in a home folder of its own, so that nothing of this machine is read or left. */
import { spawn } from 'node:child_process';
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';

export interface ProcessResult {
  /** Null when it was killed at its bound. */
  code: number | null;
  stdout: string;
  stderr: string;
}

export interface ProcessOptions {
  env?: Record<string, string>;
  cwd?: string;
  /** Written to its standard input, which then ends. */
  input?: string;
  /** A process that has not ended by then is killed. */
  boundMs?: number;
}

/** Less than the bound of a test. */
const BOUND_MS = 170_000;

export async function runProcess(
  command: string,
  args: readonly string[],
  options: ProcessOptions = {},
): Promise<ProcessResult> {
  const home = await createHome();
  const child = spawn(command, args, {
    cwd: options.cwd ?? home.path,
    env: { ...process.env, ...home.env, ...options.env },
    timeout: options.boundMs ?? BOUND_MS,
    killSignal: 'SIGKILL',
  });
  const output = { stdout: '', stderr: '' };
  for (const name of ['stdout', 'stderr'] as const) {
    child[name].setEncoding('utf8').on('data', (text: string) => {
      output[name] += text;
    });
  }
  // A client that ends without reading its input is no failure of its own.
  child.stdin.on('error', () => {});
  child.stdin.end(options.input ?? '');
  const code = await new Promise<number | null>((resolve, reject) => {
    child.once('error', reject);
    child.once('close', resolve);
  });
  await home.remove();
  return { code, ...output };
}

/** An empty home folder and the variables that make a client use it. */
export async function createHome() {
  const path = await mkdtemp(join(tmpdir(), 'boxwright-client-'));
  return {
    path,
    env: { HOME: path, XDG_CONFIG_HOME: join(path, '.config'), MCP_REMOTE_CONFIG_DIR: join(path, '.mcp-auth') },
    remove: () => rm(path, { recursive: true, force: true }),
  };
}

const BIN = fileURLToPath(new URL('../../../node_modules/.bin/', import.meta.url));

/** Command and arguments of a program of an npm package, run by the Node of these tests. */
export function npmProgram(name: string, ...args: string[]): [string, string[]] {
  return [process.execPath, [join(BIN, name), ...args]];
}
