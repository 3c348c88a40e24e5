/** The socket of the tools: one call on each connection, stopped when the connection closes. */
import { chmod, rm } from 'node:fs/promises';
import { createServer } from 'node:net';
import type { Server, Socket } from 'node:net';
import { encodeFrame, FrameDecoder, ToolsCall } from '../../protocol/tools-socket.js';
import type { Clock } from '../../runtime/clock.js';
import type { ToolResult } from '../engine.js';
import { errorKind } from '../log.js';
import type { RunnerLog } from '../log.js';

/** The runner calls one tool at a time; more connections are not its own. */
const MAX_CONNECTIONS = 16;
/** The whole call frame must be there within this time. */
const CALL_FRAME_MS = 10_000;

export type ExecuteTool = (call: ToolsCall, signal: AbortSignal) => Promise<ToolResult>;

export interface ToolsServer {
  /** Stops every call and takes no more. */
  close(): Promise<void>;
}

interface ServerOptions {
  socketPath: string;
  execute: ExecuteTool;
  clock: Clock;
  log: RunnerLog;
}

/** Listens with mode 0660, replacing the socket that an earlier start left behind. */
export async function listenForCalls(options: ServerOptions): Promise<ToolsServer> {
  await rm(options.socketPath, { force: true });
  const open = new Map<Socket, Promise<void>>();
  const server = createServer((socket) => {
    const served = serve(socket, options).finally(() => open.delete(socket));
    open.set(socket, served);
  });
  server.maxConnections = MAX_CONNECTIONS;
  await listen(server, options.socketPath);
  await chmod(options.socketPath, 0o660);
  return {
    async close() {
      const closed = new Promise<void>((resolve) => server.close(() => resolve()));
      for (const socket of open.keys()) socket.destroy();
      await Promise.all(open.values());
      await closed;
    },
  };
}

function listen(server: Server, path: string): Promise<void> {
  return new Promise((resolve, reject) => {
    server.once('error', reject);
    server.listen(path, resolve);
  });
}

/** Never rejects: whatever a peer does ends its own connection alone. */
async function serve(socket: Socket, { execute, clock, log }: ServerOptions): Promise<void> {
  const gone = new AbortController();
  socket.on('error', () => gone.abort());
  socket.on('close', () => gone.abort());
  const cancelTimeout = clock.after(CALL_FRAME_MS, () => socket.destroy());
  try {
    const call = await readCall(socket, gone.signal);
    cancelTimeout();
    if (call === undefined) return;
    const started = clock.monotonic();
    const result = await execute(call, gone.signal);
    log.info({ tool: call.tool, isError: result.isError, ms: Math.round(clock.monotonic() - started) }, 'tool call');
    if (!gone.signal.aborted) await answer(socket, result, gone.signal);
  } catch (error) {
    log.warn({ failure: errorKind(error) }, 'a connection was dropped');
  } finally {
    cancelTimeout();
    socket.destroy();
  }
}

function readCall(socket: Socket, gone: AbortSignal): Promise<ToolsCall | undefined> {
  const decoder = new FrameDecoder();
  return new Promise((resolve, reject) => {
    gone.addEventListener('abort', () => resolve(undefined), { once: true });
    socket.on('data', (chunk: Buffer) => {
      try {
        const [frame] = decoder.push(chunk);
        if (frame !== undefined) resolve(ToolsCall.parse(frame));
      } catch (error) {
        // Also after the call: a peer that goes on talking loses its connection.
        reject(error);
        socket.destroy();
      }
    });
  });
}

function answer(socket: Socket, result: ToolResult, gone: AbortSignal): Promise<void> {
  return new Promise((resolve) => {
    gone.addEventListener('abort', () => resolve(), { once: true });
    socket.end(encodeFrame({ type: 'result', ...result }));
  });
}
