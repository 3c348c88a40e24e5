/** What a claim tells the runner about the MCP servers of its agent: no address, no header, no credential of one over HTTP. */
import { referencesOf } from '../../api/credentials.js';
import type { Cache } from '../../kube/types.js';
import { mcpPath, type McpServer } from '../../protocol/mcp.js';
import type { ClaimAnswer } from '../../protocol/run.js';
import { NO_SECRET, SecretRefusal, type AgentSecrets, type Filled } from './agent-secret.js';
import { serversOf, type StdioServer } from './server-list.js';
import type { GatewayAgent } from '../../projections/agent.js';
import type { GatewayConnector } from '../../projections/connector.js';

export interface ClaimServersOptions {
  connectors: Pick<Cache<GatewayConnector>, 'get'>;
  secrets: Pick<AgentSecrets, 'forTools'>;
}

export class ClaimServers {
  constructor(private readonly options: ClaimServersOptions) {}

  /** One read at most, when a stdio server has a reference. */
  async of(agent: GatewayAgent): Promise<Required<Pick<ClaimAnswer, 'mcpServers' | 'warnings'>>> {
    const { servers, warnings } = serversOf(agent, this.options.connectors);
    const secret = this.#secretOf(agent);
    const mcpServers: McpServer[] = [];
    for (const server of servers) {
      if (server.transport === 'http') {
        mcpServers.push({ name: server.name, transport: 'http', path: mcpPath(server.name) });
        continue;
      }
      try {
        mcpServers.push(filled(server, referencesOf(server).length > 0 ? await secret() : NO_SECRET));
      } catch (error) {
        if (!(error instanceof SecretRefusal)) throw error;
        warnings.push(`MCP server ${server.name} is left out: ${error.message}.`);
      }
    }
    return { mcpServers, warnings };
  }

  #secretOf(agent: GatewayAgent): () => Promise<Filled> {
    let read: Promise<Filled> | undefined;
    return () => (read ??= this.options.secrets.forTools(agent));
  }
}

function filled({ name, command, args, env }: StdioServer, secret: Filled): McpServer {
  return {
    name,
    transport: 'stdio',
    command,
    args: args.map((text) => secret.fill(text)),
    env: Object.fromEntries(env.map((variable) => [variable.name, secret.fill(variable.value)])),
  };
}
