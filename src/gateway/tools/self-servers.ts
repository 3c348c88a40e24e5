/**
 * install_mcp: an agent connects itself to an MCP server (spec 2, selfImprovement). The same rules as for set_mcp_servers
 * hold, and no more is possible than before: no address beyond the egress of the Box, no program without a shell. The status
 * of the agent says which run added which server; it is taken back by taking the server out of the list.
 */
import type { Agent } from '../../api/v1alpha1/agent.js';
import { MAX_MCP_SERVERS, type McpServerSpec } from '../../api/v1alpha1/mcp-server.js';
import type { KubeApi } from '../../kube/types.js';
import type { GatewayToolInput } from '../../protocol/gateway-tools.js';
import type { ToolAnswer } from '../../protocol/run.js';
import { isoNow, type Clock } from '../../runtime/clock.js';
import { sameJson } from '../../runtime/same-json.js';
import { UserError } from '../../api/user-error.js';
import { changeSelf } from './change-self.js';
import { ToolRefusal, answer, type ToolContext } from './tool-context.js';
import { plainHostsOf, serverSpecOf, expectTrusted } from '../../connectors/mcp-server-rules.js';

type Installed = NonNullable<NonNullable<Agent['status']>['installedServers']>[number];

export interface SelfServersOptions {
  api: Pick<KubeApi, 'get' | 'patch'>;
  clock: Clock;
}

export class SelfServers {
  readonly #options: SelfServersOptions;

  constructor(options: SelfServersOptions) {
    this.#options = options;
  }

  /** Adds a server; one of that name is never replaced. A repeated call finds the server that it added. */
  async install(input: GatewayToolInput<'install_mcp'>, context: ToolContext): Promise<ToolAnswer> {
    const server = checked(input, context);
    const { api, clock } = this.#options;
    await changeSelf(api, context, ({ spec, status }) => {
      if (!needsAdding(spec, server)) return undefined;
      const by = { at: isoNow(clock), run: context.run.metadata.name, name: server.name };
      return {
        status: { installedServers: withServer(status?.installedServers ?? [], by) },
        spec: { mcpServers: [...(spec.mcpServers ?? []), server] },
      };
    });
    return answer({ name: server.name, note: 'You have its tools from your next run on.' });
  }
}

function checked(input: GatewayToolInput<'install_mcp'>, { agent, box }: ToolContext): McpServerSpec {
  if (input.transport === 'http' && box.egress === 'none') {
    throw new ToolRefusal(
      'runs of this Box reach no network (spec.egress.mode: none): only a person can add such a server',
    );
  }
  if (input.transport === 'stdio' && !agent.spec.tools.shell) {
    throw new ToolRefusal('you have no shell, so you cannot add a program: only a person can');
  }
  try {
    const server = serverSpecOf({ ...input, enabled: true }, 'server');
    expectTrusted({ name: box.name, plainHosts: plainHostsOf(box.trustedHosts) }, server.url, 'server');
    return server;
  } catch (error) {
    if (error instanceof UserError) throw new ToolRefusal(error.message);
    throw error;
  }
}

function needsAdding({ mcpServers = [] }: Agent['spec'], server: McpServerSpec): boolean {
  const known = mcpServers.find(({ name }) => name === server.name);
  if (known !== undefined) {
    if (sameJson(known, server)) return false;
    throw new ToolRefusal(
      `you have an MCP server ${server.name} already: choose another name; only a person can change it`,
    );
  }
  if (mcpServers.length < MAX_MCP_SERVERS) return true;
  throw new ToolRefusal(`you have ${MAX_MCP_SERVERS} MCP servers, which is the limit`);
}

/** The newest first; a server that was removed and added again stands there once. */
function withServer(before: readonly Installed[], by: Installed): Installed[] {
  return [by, ...before.filter(({ name }) => name !== by.name)].slice(0, MAX_MCP_SERVERS);
}
