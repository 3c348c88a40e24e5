/** All MCP servers of a run: connected at its start, their tools, and what did not work. */
import { z } from 'zod';
import { MCP_FAMILY, type McpServer } from '../../protocol/mcp.js';
import type { Clock } from '../../runtime/clock.js';
import type { EngineTool } from '../engine.js';
import type { RunnerLog } from '../log.js';
import type { McpAddress } from './client.js';
import { reasonOf, ServerConnection } from './server-connection.js';
import { StdioTransport } from './stdio-transport.js';

/** Of all servers together; many are found by a search (src/runner/tool-search.ts). */
const MAX_TOOLS = 1000;
/** The server checks its input itself, by a schema that only it knows fully. */
const AnyInput = z.record(z.string(), z.unknown());

export interface McpDeps {
  /** To the gateway (src/runner/run-gateway.ts). */
  fetch: typeof globalThis.fetch;
  /** Base address for paths of the gateway. */
  gatewayUrl: string;
  /** Of the tools container, where servers of transport stdio run. */
  toolsSocket: string;
  /** Name of the run. */
  run: string;
  clock: Clock;
  log: RunnerLog;
}

export interface ConnectedServers {
  tools: EngineTool[];
  /** For the record of the run. */
  warnings: string[];
  close(): Promise<void>;
}

/** Never rejects but with the reason of the signal: a server that does not answer is left out. */
export async function connectServers(
  servers: readonly McpServer[],
  deps: McpDeps,
  signal: AbortSignal,
): Promise<ConnectedServers> {
  const opened = await Promise.all(servers.map((server) => open(server, deps, signal)));
  signal.throwIfAborted();
  const connected: ConnectedServers = {
    tools: [],
    warnings: opened.flatMap(({ warnings }) => warnings),
    close: async () => {
      await Promise.all(opened.flatMap(({ connection }) => (connection === undefined ? [] : [connection.close()])));
    },
  };
  for (const { name, connection } of opened) {
    const tools = connection === undefined ? [] : toolsOf(name, connection);
    const room = MAX_TOOLS - connected.tools.length;
    connected.tools.push(...tools.slice(0, room));
    if (tools.length > room) {
      connected.warnings.push(
        `${tools.length - room} tools of MCP server ${name} are left out: a run has at most ${MAX_TOOLS} tools of MCP servers.`,
      );
    }
  }
  return connected;
}

interface Opened {
  name: string;
  connection?: ServerConnection;
  warnings: string[];
}

async function open(server: McpServer, deps: McpDeps, signal: AbortSignal): Promise<Opened> {
  const { name } = server;
  const { clock, log } = deps;
  try {
    const connection = await ServerConnection.open({ name, clock, address: () => addressOf(server, deps) }, signal);
    const { tools, unusable } = connection;
    log.info({ server: name, tools: tools.length, unusable }, 'an MCP server is connected');
    const warnings =
      unusable === 0 ? [] : [`${unusable} tools of MCP server ${name} are left out: no model takes their definitions.`];
    return { name, connection, warnings };
  } catch (error) {
    log.warn({ server: name }, 'an MCP server is left out');
    return { name, warnings: [`MCP server ${name} is left out: ${reasonOf(error)}`] };
  }
}

function addressOf(server: McpServer, { fetch, gatewayUrl, toolsSocket, run, clock }: McpDeps): McpAddress {
  if (server.transport === 'http') return { url: new URL(server.path, gatewayUrl).href, fetch };
  return new StdioTransport({ socketPath: toolsSocket, clock, run, server });
}

function toolsOf(server: string, connection: ServerConnection): EngineTool[] {
  return connection.tools.map((tool) => ({
    name: tool.name,
    family: MCP_FAMILY,
    server,
    description: tool.description,
    input: AnyInput,
    schema: tool.schema,
    isParallel: tool.isReadOnly,
    execute: (input, signal) => connection.call(tool, input, signal),
  }));
}
