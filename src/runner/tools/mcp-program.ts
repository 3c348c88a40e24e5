/**
 * An MCP server of transport stdio: a program of the agent's choice in a process group of its own. Its lines travel as
 * frames; it sees nothing of this process's environment, and goes with its connection.
 */
import { spawn } from 'node:child_process';
import type { ChildProcessByStdio } from 'node:child_process';
import { realpathSync } from 'node:fs';
import type { Readable, Writable } from 'node:stream';
import { ByteLines } from '../../net/lines.js';
import type { Clock } from '../../runtime/clock.js';
import { encodeFrame, FrameError, MAX_FRAME_BYTES, ServerMessage } from '../../protocol/tools-socket.js';
import type { ServerFrame, ToolsOpen } from '../../protocol/tools-socket.js';
import { decodeWhole } from '../../runtime/text.js';
import type { RunnerLog } from '../log.js';
import { cleanEnvironment } from './child-process.js';
import { openOutputLog } from './output-capture.js';
import { killGroup } from './process-supervisor.js';
import type { RunServer, ServerConnection } from './server.js';

/** From the end of the connection to SIGTERM, and from there to SIGKILL. */
const CLOSE_MS = 500;
const KILL_AFTER_MS = 2_000;
/** Of what it wrote to standard error: shown when it ends by itself. */
const SHOWN_ERROR_BYTES = 500;

type Program = ChildProcessByStdio<Writable, Readable, Readable>;

interface ProgramDeps {
  workspace: string;
  /** HOME of the programs; goes with the run. */
  home: string;
  clock: Clock;
  log: RunnerLog;
}

/** Runs programs in one workspace; what they write to standard error is kept in `.runs/<run>/mcp-<name>.log`. */
export function createProgramRunner(deps: ProgramDeps): RunServer {
  return async (open, connection) => {
    const { name } = open.server;
    const send = (frame: ServerFrame) => connection.socket.write(encodeFrame(frame));
    const child = start(open, deps);
    const errors = keepErrors(child, deps.workspace, open);
    const ended = endOf(child);
    const started = await startOf(child);
    if (started === undefined) {
      deps.log.info({ server: name }, 'an MCP server was started');
      send({ type: 'started' });
      forward(child, connection, send);
      await Promise.race([ended, goneOf(connection)]);
      await stop(child, ended, deps.clock);
    }
    const reason = started ?? `it ended with ${await ended}${errors()}`;
    deps.log.info({ server: name, started: started === undefined }, 'an MCP server has ended');
    await goodbye(connection, { type: 'ended', reason: reason.slice(0, 4096) });
  };
}

function start({ server }: ToolsOpen, { workspace, home }: ProgramDeps): Program {
  return spawn(server.command, server.args, {
    cwd: realpathSync(workspace),
    env: { ...cleanEnvironment(home), ...server.env },
    detached: true,
    stdio: ['pipe', 'pipe', 'pipe'],
  });
}

/** Why it could not be started; undefined when it was. */
function startOf(child: Program): Promise<string | undefined> {
  return new Promise((resolve) => {
    child.once('spawn', () => resolve(undefined));
    child.once('error', (error: NodeJS.ErrnoException) => {
      resolve(
        error.code === 'ENOENT' ? 'there is no such program in the image' : `it cannot be started (${error.code})`,
      );
    });
  });
}

function endOf(child: Program): Promise<string> {
  return new Promise((resolve) => {
    child.once('error', () => resolve('an error'));
    child.once('exit', (code, signal) => resolve(code === null ? `signal ${signal}` : `exit code ${code}`));
  });
}

function goneOf({ gone }: ServerConnection): Promise<void> {
  return new Promise((resolve) => {
    if (gone.aborted) resolve();
    else gone.addEventListener('abort', () => resolve(), { once: true });
  });
}

/** Lines out, messages in; either side waits for the other. What breaks the protocol ends the connection. */
function forward(child: Program, { socket, decoder }: ServerConnection, send: (frame: ServerFrame) => boolean): void {
  const lines = new ByteLines(MAX_FRAME_BYTES);
  const onLine = (line: Buffer) => {
    const message = parseLine(line);
    // Some programs write other things to standard output too.
    if (message !== undefined && !send({ type: 'message', message })) child.stdout.pause();
  };
  child.stdout.on('data', (chunk: Buffer) => guarded(() => lines.read(chunk).forEach(onLine)));
  socket.on('drain', () => child.stdout.resume());
  child.stdout.on('error', () => undefined);
  child.stdin.on('error', () => undefined);
  child.stdin.on('drain', () => socket.resume());
  decoder.allowServer();
  socket.on('data', (chunk: Buffer) =>
    guarded(() => {
      for (const frame of decoder.push(chunk)) {
        const { message } = ServerMessage.parse(frame);
        if (!child.stdin.write(`${JSON.stringify(message)}\n`)) socket.pause();
      }
    }),
  );
  socket.resume();

  function guarded(work: () => void): void {
    try {
      work();
    } catch {
      socket.destroy();
    }
  }
}

function parseLine(line: Buffer): Record<string, unknown> | undefined {
  if (line.length === MAX_FRAME_BYTES) throw new FrameError('a message that is too large');
  try {
    const value: unknown = JSON.parse(line.toString('utf8'));
    return typeof value === 'object' && value !== null && !Array.isArray(value)
      ? (value as Record<string, unknown>)
      : undefined;
  } catch {
    return undefined;
  }
}

/** Gives what to say of it at the end. */
function keepErrors(child: Program, workspace: string, { run, server }: ToolsOpen): () => string {
  const log = openOutputLog(workspace, run, `mcp-${server.name}.log`);
  let tail = Buffer.alloc(0);
  child.stderr.on('error', () => undefined);
  child.stderr.on('data', (chunk: Buffer) => {
    log.write(chunk);
    tail = Buffer.from(Buffer.concat([tail, chunk]).subarray(-SHOWN_ERROR_BYTES));
  });
  return () => {
    log.close();
    const text = decodeWhole(tail).trim();
    return text === '' ? '' : `; its last words: ${text}`;
  };
}

/** End of its input, as MCP wants it, then SIGTERM, then SIGKILL; the whole group is gone afterwards. */
async function stop(child: Program, ended: Promise<string>, clock: Clock): Promise<void> {
  const { pid } = child;
  if (pid === undefined) return;
  child.stdin.end();
  const timers = [
    clock.after(CLOSE_MS, () => killGroup(pid, 'SIGTERM')),
    clock.after(CLOSE_MS + KILL_AFTER_MS, () => killGroup(pid)),
  ];
  await ended;
  for (const cancel of timers) cancel();
  killGroup(pid);
  child.stdout.destroy();
  child.stderr.destroy();
}

function goodbye(connection: ServerConnection, frame: ServerFrame): Promise<void> {
  connection.socket.end(encodeFrame(frame));
  return goneOf(connection);
}
