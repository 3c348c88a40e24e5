/** Checks a call's input and hands it to its tool. A mistake of the model becomes a result that says what to do. */
import { describeMisfit } from '../../protocol/fit-input.js';
import { TOOL_DEFINITIONS, TOOL_NAMES } from '../../protocol/tools-socket.js';
import type { ToolInput, ToolName, ToolsCall } from '../../protocol/tools-socket.js';
import type { Clock } from '../../runtime/clock.js';
import type { ToolResult } from '../engine.js';
import { failed } from '../results.js';
import type { Browser } from './browser/browser.js';
import { click, navigate, screenshot, snapshot, type } from './browser/browser-tools.js';
import { editFile } from './edit.js';
import { listDirectory, readBytes, writeSkillFile, writeTextFile } from './files.js';
import { globFiles } from './glob.js';
import { grepFiles } from './grep.js';
import { readTextOrPicture } from './picture-file.js';
import type { ExecuteTool } from './server.js';
import { readBackground, runShell, stopBackground } from './shell.js';
import type { Shell } from './shell.js';
import { ToolFailure } from './tool-failure.js';
import { fetchPage } from './web/fetch.js';
import type { WebAccess } from './web/fetch.js';

/** What all calls share. */
export interface ToolServices {
  workspace: string;
  /** HOME of processes; goes with the run. */
  home: string;
  clock: Clock;
  /** That of the run: the pod has no other. */
  shell: Shell;
  /** The program of `grep`. */
  ripgrep: string;
  web: WebAccess;
  /** Absent where the image has none. */
  browser?: Browser | undefined;
}

/** What every tool gets besides its input. */
export interface ToolContext extends ToolServices {
  run: string;
  call: number;
  /** Fires when nobody waits for the result any more. */
  signal: AbortSignal;
}

type Tools = { [Name in ToolName]: (input: ToolInput<Name>, context: ToolContext) => Promise<ToolResult> };

const ok = <Input>(tool: (input: Input, context: ToolContext) => Promise<Record<string, unknown>>) => {
  return async (input: Input, context: ToolContext): Promise<ToolResult> => ({
    isError: false,
    result: await tool(input, context),
  });
};

const TOOLS: Tools = {
  shell: runShell,
  shell_output: readBackground,
  shell_stop: stopBackground,
  read: readTextOrPicture,
  write: ok(writeTextFile),
  put_skill_file: ok(writeSkillFile),
  read_bytes: ok(readBytes),
  edit: ok(editFile),
  list: ok(listDirectory),
  grep: ok(grepFiles),
  glob: ok(globFiles),
  fetch: fetchPage,
  browser_navigate: navigate,
  browser_snapshot: snapshot,
  browser_click: click,
  browser_type: type,
  browser_screenshot: screenshot,
};

/** Names of the tools that can be called here. */
export function toolsWith({ browser }: Pick<ToolServices, 'browser'>): ToolName[] {
  return TOOL_NAMES.filter((name) => browser !== undefined || TOOL_DEFINITIONS[name].family !== 'browser');
}

/** Executes calls in one workspace. The result never rejects. */
export function createToolExecutor(services: ToolServices): ExecuteTool {
  return async (call, signal) => {
    try {
      return await dispatch(call, { ...services, run: call.run, call: call.call, signal });
    } catch (error) {
      return failed(explain(error));
    }
  };
}

function dispatch({ tool, input }: ToolsCall, context: ToolContext): Promise<ToolResult> {
  const checked = TOOL_DEFINITIONS[tool].input.safeParse(input);
  if (!checked.success) {
    throw new ToolFailure(`The input does not fit ${tool}: ${describeMisfit(checked.error, input)}.`);
  }
  const execute = TOOLS[tool] as (input: unknown, context: ToolContext) => Promise<ToolResult>;
  return execute(checked.data, context);
}

function explain(error: unknown): string {
  if (error instanceof ToolFailure) return error.message;
  const code = (error as NodeJS.ErrnoException).code;
  return SYSTEM_ERRORS[code ?? ''] ?? `The tool failed${code === undefined ? '' : ` (${code})`}.`;
}

const SYSTEM_ERRORS: Record<string, string> = {
  ENOENT: 'There is no such file or directory.',
  EISDIR: 'The path is a directory.',
  ENOTDIR: 'A part of the path is not a directory.',
  EACCES: 'Permission denied.',
  ENOSPC: 'The workspace is full.',
  EDQUOT: 'The workspace is full.',
  ENAMETOOLONG: 'The path is too long.',
  EAGAIN: 'There are as many processes as the pod may have. End some of them, or wait, and call again.',
};
