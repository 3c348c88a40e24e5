/**
 * The way to an MCP server that runs in the tools container (src/protocol/tools-socket.ts). Whatever comes from there is
 * hostile: frames are bounded in size, depth and number, and a side that breaks the protocol has ended.
 */
import type { Socket } from 'node:net';
import { encodeFrame, FrameDecoder, ServerFrame } from '../../protocol/tools-socket.js';
import type { ToolsOpen } from '../../protocol/tools-socket.js';
import type { Clock } from '../../runtime/clock.js';
import { connectTools } from '../tools-connection.js';
import type { McpMessage, McpTransport } from './transport.js';

/** What the runner may have written and `tools` has not taken. */
const MAX_UNSENT_BYTES = 8 * 1024 * 1024;
/** Requests that wait for an answer. */
const MAX_WAITING = 1000;
/** JSON-RPC, for what a server did not do itself. */
const INTERNAL_ERROR = -32603;

export interface StdioTransportOptions {
  socketPath: string;
  clock: Clock;
  /** Name of the run: where the errors of the server are kept. */
  run: string;
  server: ToolsOpen['server'];
}

/**
 * Starts the server with `start`, which rejects with a reason for a person when it does not start. A request that is open
 * when the server ends is answered with a JSON-RPC error that says why.
 */
export class StdioTransport implements McpTransport {
  onmessage?: (message: McpMessage) => void;
  onerror?: (error: Error) => void;
  onclose?: () => void;

  readonly #options: StdioTransportOptions;
  readonly #decoder = new FrameDecoder();
  readonly #stop = new AbortController();
  readonly #started = Promise.withResolvers<void>();
  /** Ids of requests without an answer. */
  readonly #waiting = new Set<string | number>();
  #socket: Socket | undefined;
  #endedBecause: string | undefined;

  constructor(options: StdioTransportOptions) {
    this.#options = options;
  }

  async start(): Promise<void> {
    const frame = encodeFrame({ type: 'open', run: this.#options.run, server: this.#options.server });
    const socket = await connectTools(this.#options, this.#stop.signal);
    if (socket === undefined) throw new Error('The tools container does not answer; it may be starting again.');
    this.#socket = socket;
    this.#decoder.allowServer();
    socket.on('error', () => undefined);
    socket.on('close', () => this.#end('the tools container ended the connection'));
    socket.on('data', (chunk: Buffer) => this.#take(chunk));
    socket.write(frame);
    if (this.#stop.signal.aborted) this.#end('the connection was closed');
    await this.#started.promise;
  }

  async send(message: McpMessage): Promise<void> {
    const socket = this.#socket;
    if (socket === undefined || this.#endedBecause !== undefined) throw this.#failure();
    const { id, method } = message;
    const isRequest = method !== undefined && (typeof id === 'string' || typeof id === 'number');
    if (socket.writableLength > MAX_UNSENT_BYTES || this.#waiting.size >= MAX_WAITING) {
      this.#end('it does not take its messages');
      throw this.#failure();
    }
    const frame = encodeFrame({ type: 'message', message });
    if (isRequest) this.#waiting.add(id);
    socket.write(frame);
  }

  /** Ends the server too. */
  async close(): Promise<void> {
    this.#stop.abort();
    this.#end('the connection was closed');
  }

  #take(chunk: Buffer): void {
    try {
      for (const frame of this.#decoder.push(chunk)) this.#handle(ServerFrame.parse(frame));
    } catch {
      this.#end('the tools container broke the protocol of the tools socket');
    }
  }

  #handle(frame: ServerFrame): void {
    if (this.#endedBecause !== undefined) return;
    if (frame.type === 'ended') this.#end(frame.reason);
    else if (frame.type === 'started') this.#started.resolve();
    else this.#pass(frame.message);
  }

  #pass(message: McpMessage): void {
    const { id, method } = message;
    if (method === undefined && (typeof id === 'string' || typeof id === 'number')) this.#waiting.delete(id);
    try {
      this.onmessage?.(message);
    } catch (error) {
      // A message that the client does not understand is the server's mistake.
      this.onerror?.(error as Error);
    }
  }

  /** The first reason counts. */
  #end(reason: string): void {
    if (this.#endedBecause !== undefined) return;
    this.#endedBecause = reason;
    this.#socket?.destroy();
    this.#started.reject(this.#failure());
    this.#started.promise.catch(() => undefined);
    const error = { code: INTERNAL_ERROR, message: this.#failure().message };
    for (const id of this.#waiting) this.onmessage?.({ jsonrpc: '2.0', id, error });
    this.#waiting.clear();
    this.onclose?.();
  }

  #failure(): Error {
    return new Error(
      `MCP server ${this.#options.server.name} is not there: ${this.#endedBecause ?? 'it was not started'}.`,
    );
  }
}
