/** One child process in a group of its own, with a clean environment, a bound on its time, and no way to outlive its call unseen. */
import { spawn } from 'node:child_process';
import type { ChildProcess, StdioOptions } from 'node:child_process';
import { Readable } from 'node:stream';
import type { Clock } from '../../runtime/clock.js';
import { killGroup } from './process-supervisor.js';
import { startWhenPossible } from './start-process.js';

/** From SIGTERM to SIGKILL. */
const KILL_AFTER_MS = 2_000;
/** After the process ended: how long its output may be silent, and how long it may take in all, before it is let go. */
const DRAIN_IDLE_MS = 50;
const DRAIN_TOTAL_MS = 1_000;

export interface ChildOptions {
  file: string;
  args: readonly string[];
  cwd: string;
  /** HOME of the process. */
  home: string;
  /** The clean one of `home` when absent. */
  env?: Record<string, string>;
  /** As long as it wants when absent. */
  timeoutMs?: number;
  clock: Clock;
  signal: AbortSignal;
  /** Output and errors in the order of their arrival. */
  onOutput: (chunk: Buffer) => void;
  /** What the process writes to its descriptor 3, which it has only with this. */
  onState?: (chunk: Buffer) => void;
}

export interface ChildEnd {
  /** Null when a signal ended it. */
  exitCode: number | null;
  endSignal: NodeJS.Signals | null;
  timedOut: boolean;
}

/**
 * Nothing of this process's environment: what the agent runs sees what the image has, and no more. Without BASH_ENV, ENV and
 * XDG_… every setting comes from the image or from `home`.
 */
export function cleanEnvironment(home: string): Record<string, string> {
  return { PATH: '/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin', HOME: home, LANG: 'C.UTF-8' };
}

/** Runs the process to its end. Rejects only when it cannot be started. */
export async function runChild(options: ChildOptions): Promise<ChildEnd> {
  const { file, args, cwd, clock, signal } = options;
  const env = options.env ?? cleanEnvironment(options.home);
  const stdio: StdioOptions = ['ignore', 'pipe', 'pipe', ...(options.onState === undefined ? [] : ['pipe' as const])];
  const start = () => spawn(file, args, { cwd, env, detached: true, stdio });
  const child = await startWhenPossible({ start, clock, signal });
  let lastOutput = 0;
  const streams = outputsOf(child);
  for (const [index, stream] of streams.entries()) {
    const take = index < 2 ? options.onOutput : options.onState;
    stream.on('data', (chunk: Buffer) => {
      lastOutput = clock.monotonic();
      take?.(chunk);
    });
    stream.on('error', () => undefined);
  }
  const closed = new Promise<void>((resolve) => child.once('close', () => resolve()));
  const exited = exitOf(child);
  const guard = guardTime(child, options);
  try {
    const end = await exited;
    await drain(streams, { closed, clock, lastOutput: () => lastOutput });
    return { ...end, timedOut: guard.timedOut() };
  } finally {
    guard.end();
    for (const stream of streams) stream.destroy();
  }
}

/** Output, errors, and descriptor 3 if there is one. */
function outputsOf({ stdout, stderr, stdio }: ChildProcess): Readable[] {
  return [stdout, stderr, stdio[3]].filter((stream) => stream instanceof Readable);
}

function exitOf(child: ChildProcess): Promise<Omit<ChildEnd, 'timedOut'>> {
  return new Promise((resolve, reject) => {
    child.once('error', reject);
    child.once('exit', (exitCode, endSignal) => resolve({ exitCode, endSignal }));
  });
}

/** SIGTERM to the group at the time limit or when nobody waits any more, then SIGKILL. */
function guardTime(child: ChildProcess, { clock, timeoutMs, signal }: ChildOptions) {
  let timedOut = false;
  let stopped = false;
  let cancelKill = () => {};
  const stop = (group: number) => {
    stopped = true;
    killGroup(group, 'SIGTERM');
    cancelKill = clock.after(KILL_AFTER_MS, () => killGroup(group));
  };
  const { pid } = child;
  const onTimeout = () => {
    timedOut = true;
    if (pid !== undefined) stop(pid);
  };
  const cancelTimeout = timeoutMs === undefined ? () => {} : clock.after(timeoutMs, onTimeout);
  const onAbort = () => {
    if (pid !== undefined) stop(pid);
  };
  if (signal.aborted) onAbort();
  else signal.addEventListener('abort', onAbort, { once: true });
  return {
    timedOut: () => timedOut,
    end: () => {
      cancelTimeout();
      cancelKill();
      signal.removeEventListener('abort', onAbort);
      // A command that was stopped leaves nothing behind; one that ended by itself may leave a server running.
      if (stopped && pid !== undefined) killGroup(pid);
    },
  };
}

interface Drain {
  closed: Promise<void>;
  clock: Clock;
  lastOutput: () => number;
}

/** Waits for the rest of the output, but not for a background process that keeps the pipe open. */
async function drain(streams: readonly Readable[], { closed, clock, lastOutput }: Drain): Promise<void> {
  const started = clock.monotonic();
  while (!streams.every((stream) => stream.closed) && clock.monotonic() - started < DRAIN_TOTAL_MS) {
    const before = lastOutput();
    await Promise.race([closed, pause(clock, DRAIN_IDLE_MS)]);
    // On a busy machine the timer may come before data that is there already: look at the pipe once more.
    await new Promise((resolve) => setImmediate(resolve));
    if (lastOutput() === before && streams.every(({ readableLength }) => readableLength === 0)) break;
  }
}

function pause(clock: Clock, ms: number): Promise<void> {
  return new Promise((resolve) => clock.after(ms, resolve));
}
