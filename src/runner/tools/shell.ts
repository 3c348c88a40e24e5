/** The tools `shell`, `shell_output` and `shell_stop`. */
import { stat } from 'node:fs/promises';
import { SHELL_DEFAULT_SECONDS } from '../../protocol/tools-socket.js';
import type { ToolInput } from '../../protocol/tools-socket.js';
import type { Clock } from '../../runtime/clock.js';
import type { ToolResult } from '../engine.js';
import { BackgroundCommands } from './background.js';
import type { BackgroundLook } from './background.js';
import { runChild } from './child-process.js';
import type { ChildEnd } from './child-process.js';
import type { ToolContext } from './executor.js';
import { openOutputLog, OutputCapture } from './output-capture.js';
import { MAX_STATE_BYTES, ShellSession } from './shell-session.js';
import { ToolFailure } from './tool-failure.js';
import { displayPath, resolveInWorkspace } from './workspace-path.js';

/** A command that fails at once says so in the answer to its start. */
const FIRST_LOOK_MS = 300;

/** The shell of one run. */
export interface Shell {
  session: ShellSession;
  background: BackgroundCommands;
}

/** A shell that begins in the workspace, with nothing in its environment but what the image sets. */
export function createShell({ home, clock }: { home: string; clock: Clock }): Shell {
  return { session: new ShellSession(home), background: new BackgroundCommands(clock) };
}

/** Runs a command. An exit code other than 0 and a timeout are errors, with the output that there is. */
export async function runShell(input: ToolInput<'shell'>, context: ToolContext): Promise<ToolResult> {
  const cwd = await directoryOf(input, context);
  if (input.background === true) return startInBackground(input.command, cwd, context);
  const { session } = context.shell;
  const seconds = input.timeoutSeconds ?? SHELL_DEFAULT_SECONDS;
  const capture = new OutputCapture(openOutputLog(context.workspace, context.run, `${context.call}.log`));
  const state = new BoundedBytes();
  const end = await runChild({
    ...session.telling(input.command, cwd),
    home: context.home,
    timeoutMs: seconds * 1000,
    clock: context.clock,
    signal: context.signal,
    onOutput: (chunk) => capture.add(chunk),
    onState: (chunk) => state.add(chunk),
  });
  session.keep(state.whole());
  const now = await session.directory();
  const directory = now === undefined ? '.' : await displayDirectory(context.workspace, now);
  return {
    isError: end.exitCode !== 0,
    result: {
      ...endOf(end),
      ...whyStopped(end, { seconds, signal: context.signal }),
      ...(directory === '.' ? {} : { directory }),
      ...capture.finish(),
    },
  };
}

/** Gives what a background command wrote since the last look. */
export async function readBackground(input: ToolInput<'shell_output'>, context: ToolContext): Promise<ToolResult> {
  const { id, waitSeconds = 0 } = input;
  return lookResult(await context.shell.background.look(id, waitSeconds * 1000, context.signal));
}

/** Ends a background command. */
export async function stopBackground({ id }: ToolInput<'shell_stop'>, context: ToolContext): Promise<ToolResult> {
  return { ...lookResult(await context.shell.background.stop(id)), isError: false };
}

async function startInBackground(command: string, cwd: string, context: ToolContext): Promise<ToolResult> {
  const { session, background } = context.shell;
  const name = background.start({
    start: session.quiet(command, cwd),
    home: context.home,
    log: (turn) => openOutputLog(context.workspace, context.run, `${context.call}-${turn}.log`),
  });
  return lookResult(await background.look(name, FIRST_LOOK_MS, context.signal));
}

function lookResult({ end, background, ...output }: BackgroundLook): ToolResult {
  if (end === undefined) return { isError: false, result: { background, running: true, ...output } };
  return { isError: end.exitCode !== 0, result: { background, ...endOf(end), ...output } };
}

/** `cwd` of the call, relative to the workspace; else where the last command ended. */
async function directoryOf({ cwd }: ToolInput<'shell'>, { workspace, shell }: ToolContext): Promise<string> {
  const kept = cwd === undefined ? await shell.session.directory() : undefined;
  if (kept !== undefined) return kept;
  const path = await resolveInWorkspace(workspace, cwd ?? '.');
  if (!(await stat(path)).isDirectory()) throw new ToolFailure('cwd is not a directory.');
  return path;
}

/** Relative to the workspace, or absolute outside of it. */
async function displayDirectory(workspace: string, directory: string): Promise<string> {
  const shown = await displayPath(workspace, directory);
  return shown.startsWith('..') ? directory : shown;
}

function endOf({ exitCode, endSignal }: ChildEnd) {
  return { exitCode, ...(endSignal === null ? {} : { signal: endSignal }) };
}

function whyStopped({ timedOut }: ChildEnd, { seconds, signal }: { seconds: number; signal: AbortSignal }) {
  if (timedOut) return { error: `The command was stopped after ${seconds} seconds.` };
  return signal.aborted ? { error: 'The command was stopped with the run.' } : {};
}

/** Holds a little more than a state may have: what is larger is seen to be, and not held. */
class BoundedBytes {
  #chunks: Buffer[] = [];
  #bytes = 0;

  add(chunk: Buffer): void {
    if (this.#bytes <= MAX_STATE_BYTES) this.#chunks.push(chunk);
    this.#bytes += chunk.length;
  }

  whole(): Buffer {
    return this.#bytes > MAX_STATE_BYTES ? Buffer.alloc(0) : Buffer.concat(this.#chunks);
  }
}
