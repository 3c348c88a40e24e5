/**
 * What calls of `shell` share in a run: the directory and the exported variables that the last one ended with. They are told
 * through a pipe of each command's own and kept in this process: no file that an agent could come across or break.
 */
import { existsSync } from 'node:fs';
import { stat } from 'node:fs/promises';
import { cleanEnvironment } from './child-process.js';

const BASH = '/bin/bash';
const SHELL = existsSync(BASH) ? BASH : '/bin/sh';
/** What a command leaves is told on this descriptor, which agents do not use; other shells know those of one digit alone. */
const STATE = SHELL === BASH ? 198 : 9;
/** Larger states are not kept: an environment has to fit into the start of every process. */
export const MAX_STATE_BYTES = 128 * 1024;
/** Of each shell's own. */
const NOT_KEPT = ['_', 'SHLVL'];

/**
 * Commands come after this process in the CPU time of their container: else the thousand processes of a fork bomb leave
 * none to the supervisor that ends them. It takes nothing from the share of the container on its node.
 */
const LAST = ['-n', '19'];

/** Tells directory and environment at the end, also at `exit`; the command itself runs as if nothing stood around it. */
const TELLING = `exec ${STATE}>&3 3>&-; trap '{ printf "%s\\0" "$(pwd -P)"; /usr/bin/env -0; } >&${STATE} 2>/dev/null' EXIT; eval "set --; $1"`;

/** How a process of the shell is started. */
export interface ShellStart {
  file: string;
  args: string[];
  cwd: string;
  env: Record<string, string>;
}

export class ShellSession {
  readonly #home: string;
  #directory: string | undefined;
  #environment: Record<string, string>;

  constructor(home: string) {
    this.#home = home;
    this.#environment = cleanEnvironment(home);
  }

  /** Where the next command begins: undefined is the workspace. A directory that is gone is forgotten. */
  async directory(): Promise<string | undefined> {
    if (this.#directory === undefined) return undefined;
    const isThere = await stat(this.#directory).then(
      (info) => info.isDirectory(),
      () => false,
    );
    if (!isThere) this.#directory = undefined;
    return this.#directory;
  }

  /** A command whose end is told to `keep`. */
  telling(command: string, cwd: string): ShellStart {
    const name = SHELL === BASH ? 'bash' : 'sh';
    return this.#start(cwd, ['-c', TELLING, name, command]);
  }

  /** A command that leaves nothing to the next. */
  quiet(command: string, cwd: string): ShellStart {
    return this.#start(cwd, ['-c', command]);
  }

  #start(cwd: string, args: string[]): ShellStart {
    return { file: '/usr/bin/nice', args: [...LAST, SHELL, ...args], cwd, env: { ...this.#environment } };
  }

  /** Takes what a command told; one that was killed told nothing, and what it began with stays. */
  keep(state: Buffer): void {
    if (state.length === 0 || state.length > MAX_STATE_BYTES || state.at(-1) !== 0) return;
    const [directory = '', ...variables] = state.toString('utf8').split('\0').slice(0, -1);
    if (!directory.startsWith('/') || variables.length === 0) return;
    this.#directory = directory;
    const pairs = variables.map((variable): [string, string] => {
      const at = variable.indexOf('=');
      return [variable.slice(0, at), variable.slice(at + 1)];
    });
    const kept = pairs.filter(([name]) => name !== '' && !NOT_KEPT.includes(name));
    // Without HOME and PATH of its own a command would get those of nobody.
    this.#environment = { ...cleanEnvironment(this.#home), ...Object.fromEntries(kept) };
  }
}
