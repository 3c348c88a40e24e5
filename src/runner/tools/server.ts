/** The socket of the tools: one call or one MCP server on each connection, stopped when the connection closes. */
import { chmod, rm } from 'node:fs/promises';
import { createServer } from 'node:net';
import type { Server, Socket } from 'node:net';
import { encodeFrame, FrameDecoder, ToolsRequest } from '../../protocol/tools-socket.js';
import type { ToolName, ToolsCall, ToolsOffer, ToolsOpen, ToolsResult } from '../../protocol/tools-socket.js';
import type { Clock } from '../../runtime/clock.js';
import type { ToolResult } from '../engine.js';
import { errorKind } from '../log.js';
import type { RunnerLog } from '../log.js';

/** The runner calls at most five tools at a time and has at most 20 servers; more connections are not its own. */
const MAX_CONNECTIONS = 36;
/** The whole first frame must be there within this time. */
const FIRST_FRAME_MS = 10_000;

export type ExecuteTool = (call: ToolsCall, signal: AbortSignal) => Promise<ToolResult>;

/** Runs one MCP server until it or the connection ends. Never rejects. */
export type RunServer = (open: ToolsOpen, connection: ServerConnection) => Promise<void>;

/** The connection of one MCP server, after its `open` frame. */
export interface ServerConnection {
  socket: Socket;
  /** Has taken the `open` frame and nothing more. */
  decoder: FrameDecoder;
  /** Fires when the connection is gone. */
  gone: AbortSignal;
}

export interface ToolsServer {
  /** Stops every call and takes no more. */
  close(): Promise<void>;
}

interface ServerOptions {
  socketPath: string;
  /** What `execute` can do here. */
  offered: readonly ToolName[];
  execute: ExecuteTool;
  runServer: RunServer;
  clock: Clock;
  log: RunnerLog;
}

/** Listens with mode 0660, replacing the socket that an earlier start left behind. */
export async function listenForCalls(options: ServerOptions): Promise<ToolsServer> {
  await rm(options.socketPath, { force: true });
  const open = new Map<Socket, Promise<void>>();
  const server = createServer({ allowHalfOpen: true }, (socket) => {
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
async function serve(socket: Socket, { offered, execute, runServer, clock, log }: ServerOptions): Promise<void> {
  const gone = new AbortController();
  /** Also when the peer has closed its half: it may still read. */
  const unwanted = new AbortController();
  socket.on('error', () => gone.abort());
  socket.on('close', () => gone.abort());
  socket.on('end', () => unwanted.abort());
  const endWithPeer = () => socket.end();
  socket.on('end', endWithPeer);
  const cancelTimeout = clock.after(FIRST_FRAME_MS, () => socket.destroy());
  try {
    const decoder = new FrameDecoder();
    const request = await readRequest(socket, decoder, gone.signal);
    cancelTimeout();
    if (request === undefined) return;
    if (request.type === 'open') {
      await runServer(request, { socket, decoder, gone: gone.signal });
      return;
    }
    if (request.type === 'hello') {
      await answer(socket, { type: 'offer', tools: [...offered] }, gone.signal);
      return;
    }
    socket.off('end', endWithPeer);
    const started = clock.monotonic();
    const result = await execute(request, AbortSignal.any([gone.signal, unwanted.signal]));
    log.info({ tool: request.tool, isError: result.isError, ms: Math.round(clock.monotonic() - started) }, 'tool call');
    if (!gone.signal.aborted) await answer(socket, { type: 'result', ...result }, gone.signal);
  } catch (error) {
    log.warn({ failure: errorKind(error) }, 'a connection was dropped');
  } finally {
    cancelTimeout();
    socket.destroy();
  }
}

function readRequest(socket: Socket, decoder: FrameDecoder, gone: AbortSignal): Promise<ToolsRequest | undefined> {
  return new Promise((resolve, reject) => {
    gone.addEventListener('abort', () => resolve(undefined), { once: true });
    const onData = (chunk: Buffer) => {
      try {
        const [frame] = decoder.push(chunk);
        if (frame === undefined) return;
        const request = ToolsRequest.parse(frame);
        // What follows an `open` frame is read by the server's own reader.
        if (request.type === 'open') socket.off('data', onData).pause();
        resolve(request);
      } catch (error) {
        // Also after the call: a peer that goes on talking loses its connection.
        reject(error);
        socket.destroy();
      }
    };
    socket.on('data', onData);
  });
}

function answer(socket: Socket, frame: ToolsResult | ToolsOffer, gone: AbortSignal): Promise<void> {
  return new Promise((resolve) => {
    gone.addEventListener('abort', () => resolve(), { once: true });
    socket.end(encodeFrame(frame));
  });
}
