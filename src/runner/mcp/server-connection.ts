/**
 * One MCP server of a run: connected once, its tools fixed from then on. A session that the server has forgotten is opened
 * again; a tool that then reads differently is not called, since neither the model nor a person has seen it so.
 */
import { timeoutSignal } from '../../runtime/timeout-signal.js';
import type { Clock } from '../../runtime/clock.js';
import type { ToolResult } from '../engine.js';
import { failed } from '../results.js';
import { connectClient, McpFailure, type McpAddress, type McpClient } from './client.js';
import { definitionOf, type ToolDefinition } from './tool-definition.js';
import { resultOf } from './tool-result.js';

const CONNECT_MS = 30_000;
const CALL_MS = 60_000;
const CLOSE_MS = 2_000;

export interface ServerOptions {
  name: string;
  /** Makes the way to it, anew for each session. */
  address: () => McpAddress;
  clock: Clock;
}

export class ServerConnection {
  readonly #options: ServerOptions;
  #client: McpClient;
  readonly tools: readonly ToolDefinition[];
  /** Tools that no model can be told of. */
  readonly unusable: number;

  private constructor(options: ServerOptions, client: McpClient, listed: Listed) {
    this.#options = options;
    this.#client = client;
    this.tools = listed.tools;
    this.unusable = listed.unusable;
  }

  /** Rejects with an error that says why, for a person, or with the reason of the signal. */
  static async open(options: ServerOptions, signal: AbortSignal): Promise<ServerConnection> {
    const { client, listed } = await openSession(options, signal);
    return new ServerConnection(options, client, listed);
  }

  /** A failure of any kind is a result; rejects only with the reason of the signal. */
  async call(tool: ToolDefinition, input: Record<string, unknown>, signal: AbortSignal): Promise<ToolResult> {
    try {
      return await this.#call(tool, input, signal);
    } catch (error) {
      signal.throwIfAborted();
      return failed(reasonOf(error));
    }
  }

  async #call(tool: ToolDefinition, input: Record<string, unknown>, signal: AbortSignal): Promise<ToolResult> {
    try {
      return await this.#once(tool, input, signal);
    } catch (error) {
      if (!(error instanceof McpFailure) || !error.isSessionLost) throw error;
    }
    const { client, listed } = await openSession(this.#options, signal);
    this.#client = client;
    const now = listed.tools.find(({ name }) => name === tool.name);
    if (now?.fingerprint !== tool.fingerprint) {
      return failed(`MCP server ${this.#options.name} has started anew, and this tool is not what it was: not called.`);
    }
    return this.#once(tool, input, signal);
  }

  async #once(tool: ToolDefinition, input: Record<string, unknown>, signal: AbortSignal): Promise<ToolResult> {
    const work = (during: AbortSignal) => this.#client.callTool(tool.remoteName, input, during);
    return resultOf(await within(CALL_MS, { ...this.#options, signal }, work));
  }

  /** Ends the session at the server, as far as that goes quickly. */
  async close(): Promise<void> {
    const { clock } = this.#options;
    await new Promise<void>((resolve) => {
      const cancel = clock.after(CLOSE_MS, resolve);
      const done = () => {
        cancel();
        resolve();
      };
      this.#client.close().then(done, done);
    });
  }
}

interface Listed {
  tools: ToolDefinition[];
  unusable: number;
}

async function openSession(
  options: ServerOptions,
  signal: AbortSignal,
): Promise<{ client: McpClient; listed: Listed }> {
  return within(CONNECT_MS, { ...options, signal }, async (during) => {
    const client = await connectClient(options.address(), during);
    try {
      return { client, listed: listedFrom(options.name, await client.listTools(during)) };
    } catch (error) {
      void client.close().catch(() => undefined);
      throw error;
    }
  });
}

function listedFrom(server: string, remote: Parameters<typeof definitionOf>[1][]): Listed {
  const tools = new Map<string, ToolDefinition>();
  for (const tool of remote) {
    const definition = definitionOf(server, tool);
    // Of two tools with one name the first counts.
    if (definition !== undefined && !tools.has(definition.name)) tools.set(definition.name, definition);
  }
  return { tools: [...tools.values()], unusable: remote.length - tools.size };
}

interface Bounds {
  name: string;
  clock: Clock;
  signal: AbortSignal;
}

async function within<T>(
  ms: number,
  { name, clock, signal }: Bounds,
  work: (during: AbortSignal) => Promise<T>,
): Promise<T> {
  const bound = timeoutSignal(clock, ms, signal);
  try {
    return await work(bound.signal);
  } catch (error) {
    signal.throwIfAborted();
    if (bound.expired)
      throw new Error(`MCP server ${name} gave no answer within ${ms / 1000} seconds.`, { cause: error });
    throw error;
  } finally {
    bound.dispose();
  }
}

/** For a person. */
export function reasonOf(error: unknown): string {
  return error instanceof Error ? error.message : 'no answer';
}
