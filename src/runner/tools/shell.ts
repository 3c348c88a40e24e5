/** The tool `shell`. */
import { existsSync } from 'node:fs';
import { stat } from 'node:fs/promises';
import { SHELL_DEFAULT_SECONDS } from '../../protocol/tools-socket.js';
import type { ToolInput } from '../../protocol/tools-socket.js';
import type { ToolResult } from '../engine.js';
import { runChild } from './child-process.js';
import type { ChildEnd } from './child-process.js';
import type { ToolContext } from './executor.js';
import { openOutputLog, OutputCapture } from './output-capture.js';
import { ToolFailure } from './tool-failure.js';
import { resolveInWorkspace } from './workspace-path.js';

const SHELL = existsSync('/bin/bash') ? '/bin/bash' : '/bin/sh';

/**
 * Commands come after this process in the CPU time of their container: else the thousand processes of a fork bomb leave
 * none to the supervisor that ends them. It takes nothing from the share of the container on its node.
 */
const LAST = ['-n', '19'];

/** Runs a command. An exit code other than 0 and a timeout are errors, with the output that there is. */
export async function runShell(input: ToolInput<'shell'>, context: ToolContext): Promise<ToolResult> {
  const cwd = await resolveInWorkspace(context.workspace, input.cwd ?? '.');
  if (!(await stat(cwd)).isDirectory()) throw new ToolFailure('cwd is not a directory.');
  const seconds = input.timeoutSeconds ?? SHELL_DEFAULT_SECONDS;
  const capture = new OutputCapture(openOutputLog(context.workspace, context.run, `${context.call}.log`));
  const end = await runChild({
    file: 'nice',
    args: [...LAST, SHELL, '-c', input.command],
    cwd,
    home: context.home,
    timeoutMs: seconds * 1000,
    clock: context.clock,
    signal: context.signal,
    onOutput: (chunk) => capture.add(chunk),
  });
  return {
    isError: end.exitCode !== 0,
    result: {
      exitCode: end.exitCode,
      ...(end.endSignal === null ? {} : { signal: end.endSignal }),
      ...whyStopped(end, { seconds, signal: context.signal }),
      ...capture.finish(),
    },
  };
}

function whyStopped({ timedOut }: ChildEnd, { seconds, signal }: { seconds: number; signal: AbortSignal }) {
  if (timedOut) return { error: `The command was stopped after ${seconds} seconds.` };
  return signal.aborted ? { error: 'The command was stopped with the run.' } : {};
}
