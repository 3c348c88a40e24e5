/** The MCP servers that people give to an agent (spec 2, mcpServers). */
import { referencesOf } from '../../api/credentials.js';
import type { McpServerSpec } from '../../api/v1alpha1/mcp-server.js';
import { changeAgent } from '../agents/change-agent.js';
import type { ChangeAgentDeps } from '../agents/change-agent.js';
import type { Caller } from '../keys/key-check.js';
import { sameJson } from '../../runtime/same-json.js';
import { findAgent } from '../scope.js';
import { UserError } from '../../api/user-error.js';
import { serverSpecOf, expectTrusted } from '../../connectors/mcp-server-rules.js';
import type { McpServerInput } from '../../connectors/mcp-server-rules.js';
import { projectApiAgent } from '../../projections/agent.js';

/** An MCP server as the tools show it; references stand as they were written. */
export function mcpServerRecord(server: McpServerSpec, presentSecrets: readonly string[]) {
  return {
    name: server.name,
    transport: server.transport,
    url: server.url ?? null,
    headers: toObject(server.headers),
    command: server.command ?? null,
    args: server.args ?? [],
    env: toObject(server.env),
    enabled: server.enabled,
    missingSecrets: referencesOf(server).filter((name) => !presentSecrets.includes(name)),
  };
}

function toObject(list: readonly { name: string; value: string }[] | undefined): Record<string, string> {
  return Object.fromEntries((list ?? []).map(({ name, value }) => [name, value]));
}

/** Of all servers of an agent: etcd takes twice as much, which leaves room for the rest of it and for its status. */
const MAX_SERVERS_BYTES = 768 * 1024;

/** The result of set_mcp_servers: the list replaces the one before; at most one write. */
export async function setMcpServers(
  deps: ChangeAgentDeps,
  caller: Caller,
  id: string,
  given: readonly McpServerInput[],
) {
  const servers = given.map((server, index) => serverSpecOf(server, `servers.${index}`));
  refuseDoubles(servers);
  expectStorable(servers);
  const known = await findAgent(deps, caller, id);
  const { name = known.box, plainHosts = [] } = deps.caches.Box.get(known.box) ?? {};
  for (const [index, { url }] of servers.entries()) expectTrusted({ name, plainHosts }, url, `servers.${index}`);
  let before: readonly McpServerSpec[] = [];
  const agent = await changeAgent(deps, caller, known, ({ spec }) => {
    before = spec.mcpServers ?? [];
    return sameJson(before, servers) ? undefined : { mcpServers: servers };
  });
  const { presentSecrets } = projectApiAgent(agent);
  const former = new Map(before.map((server) => [server.name, server]));
  const names = new Set(servers.map(({ name }) => name));
  return {
    mcpServers: servers.map((server) => mcpServerRecord(server, presentSecrets)),
    added: [...names].filter((name) => !former.has(name)),
    updated: servers.filter((server) => isChanged(former.get(server.name), server)).map(({ name }) => name),
    removed: [...former.keys()].filter((name) => !names.has(name)),
  };
}

function isChanged(before: McpServerSpec | undefined, now: McpServerSpec): boolean {
  return before !== undefined && !sameJson(before, now);
}

function expectStorable(servers: readonly McpServerSpec[]): void {
  const bytes = Buffer.byteLength(JSON.stringify(servers));
  if (bytes <= MAX_SERVERS_BYTES) return;
  throw new UserError(`argument "servers" has ${bytes} bytes; at most ${MAX_SERVERS_BYTES} (768 KiB) are possible`);
}

function refuseDoubles(servers: readonly McpServerSpec[]): void {
  const double = servers.find(({ name }, index) => servers.findIndex((other) => other.name === name) !== index);
  if (double !== undefined) throw new UserError(`two servers have the name ${double.name}: names are unique`);
}
