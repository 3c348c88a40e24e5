/** The MCP servers of an agent: those that people gave it, and its connectors. Pure. */
import type { Cache } from '../../kube/types.js';
import type { GatewayAgent } from '../../projections/agent.js';
import type { GatewayConnector } from '../../projections/connector.js';

interface NamedValue {
  name: string;
  value: string;
}

/** A server that the gateway asks itself. Addresses and headers hold references, never values. */
export interface HttpServer {
  transport: 'http';
  name: string;
  kind: McpKind;
  url: string;
  headers: readonly NamedValue[];
}

/** A server that is started beside the tools of the run. */
export interface StdioServer {
  transport: 'stdio';
  name: string;
  command: string;
  args: readonly string[];
  env: readonly NamedValue[];
}

/** `server`: given by a person; `connector`: from the catalogue. */
export type McpKind = 'server' | 'connector';

export interface ServerList {
  servers: (HttpServer | StdioServer)[];
  /** What is left out, and what to do about it. */
  warnings: string[];
}

/** All that are enabled. A connector whose slug is the name of a server of the agent's own is left out: what a person wrote wins. */
export function serversOf(
  agent: Pick<GatewayAgent, 'spec'>,
  catalog: Pick<Cache<GatewayConnector>, 'get'>,
): ServerList {
  const { mcpServers = [], connectors = [] } = agent.spec;
  const list: ServerList = { servers: [], warnings: [] };
  for (const { enabled, ...server } of mcpServers) {
    if (!enabled) continue;
    const { name, transport } = server;
    if (transport === 'http') {
      list.servers.push({ transport, name, kind: 'server', url: server.url ?? '', headers: server.headers ?? [] });
    } else {
      const { command = '', args = [], env = [] } = server;
      list.servers.push({ transport, name, command, args, env });
    }
  }
  for (const slug of connectors) {
    const connector = catalog.get(slug);
    if (connector === undefined) {
      list.warnings.push(`Connector ${slug} is left out: it is not in the catalog any more. Detach it.`);
    } else if (mcpServers.some(({ name }) => name === slug)) {
      list.warnings.push(
        `Connector ${slug} is left out: an MCP server of the agent has the same name. Rename that one, or detach the connector.`,
      );
    } else list.servers.push({ transport: 'http', name: slug, kind: 'connector', ...connector });
  }
  return list;
}
