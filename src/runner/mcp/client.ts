/** The only file that knows the MCP client of the AI SDK. It is loaded when a run has a server. */
import { createMCPClient, type MCPTransport } from '@ai-sdk/mcp';
import { parseJson } from '../gateway-client.js';
import type { McpTransport } from './transport.js';
import { cutUtf8 } from '../../runtime/text.js';

const MAX_PAGES = 20;
const MAX_REASON_BYTES = 500;

/** A tool as its server describes it, unchecked. */
export interface RemoteTool {
  name: string;
  description?: string | undefined;
  inputSchema: Record<string, unknown>;
  annotations?: { readOnlyHint?: boolean | undefined } | undefined;
}

/** What a server answered to a call, unchecked. */
export interface RemoteResult {
  content?: unknown;
  structuredContent?: unknown;
  isError?: unknown;
}

export interface McpClient {
  /** Rejects with {@link McpFailure}. */
  listTools(signal: AbortSignal): Promise<RemoteTool[]>;
  /** Rejects with {@link McpFailure}. */
  callTool(name: string, input: Record<string, unknown>, signal: AbortSignal): Promise<RemoteResult>;
  close(): Promise<void>;
}

/** A server or the way to it failed; the message is for a person. */
export class McpFailure extends Error {
  override readonly name = 'McpFailure';
  constructor(
    message: string,
    /** The server does not know this session: nothing was executed. */
    readonly isSessionLost: boolean,
  ) {
    super(message);
  }
}

/** How to reach a server: over HTTP at a path of the gateway, or with a transport of its own. */
export type McpAddress = { url: string; fetch: typeof globalThis.fetch } | McpTransport;

/** A client that has greeted its server. Rejects with {@link McpFailure}. */
export async function connectClient(address: McpAddress, signal: AbortSignal): Promise<McpClient> {
  const transport =
    'url' in address
      ? { type: 'http' as const, url: address.url, fetch: address.fetch }
      : (address as unknown as MCPTransport);
  const client = await asked(
    createMCPClient({
      transport,
      clientName: 'boxwright',
      initializationOptions: { signal },
      onUncaughtError: () => undefined,
    }),
  );
  return {
    listTools: async (during) => {
      const tools: RemoteTool[] = [];
      let cursor: string | undefined;
      for (let page = 0; page < MAX_PAGES; page++) {
        const params = cursor === undefined ? {} : { params: { cursor } };
        const answer = await asked(client.listTools({ ...params, options: { signal: during } }));
        tools.push(...answer.tools);
        cursor = answer.nextCursor;
        if (cursor === undefined || cursor === '') break;
      }
      return tools;
    },
    callTool: (name, input, during) =>
      asked(client.callTool({ name, arguments: input, options: { signal: during } })) as Promise<RemoteResult>,
    close: () => client.close(),
  };
}

async function asked<T>(work: Promise<T>): Promise<T> {
  try {
    return await work;
  } catch (error) {
    const { statusCode, responseBody, message } = error as {
      statusCode?: number;
      responseBody?: string;
      message?: string;
    };
    const said = parseJson(responseBody ?? '') as { error?: { message?: unknown } } | null | undefined;
    const reason = typeof said?.error?.message === 'string' ? said.error.message : (message ?? 'no answer');
    throw new McpFailure(cutUtf8(reason, MAX_REASON_BYTES), statusCode === 404);
  }
}
