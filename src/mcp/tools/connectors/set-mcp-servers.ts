import { z } from 'zod';
import { MAX_MCP_SERVERS, MCP_SERVER_NAME, MCP_TRANSPORTS } from '../../../api/v1alpha1/mcp-server.js';
import { setMcpServers } from '../../../services/connectors/mcp-servers.js';
import { defineTool } from '../../define-tool.js';
import { agentIdArgument } from '../common-arguments.js';

/** `{NAME: text}`, as many as an agent may have. */
const MAX_TEXTS = 64;
const texts = z
  .object({})
  .catchall(z.string().max(4096))
  .refine((record) => Object.keys(record).length <= MAX_TEXTS, `must have at most ${MAX_TEXTS} entries`);

const server = z.object({
  name: z
    .string()
    .max(32)
    .regex(MCP_SERVER_NAME, 'must have letters, digits, _ and -, and begin with a letter or digit')
    .describe('Letters, digits, _ and -.'),
  transport: z.enum(MCP_TRANSPORTS).default('http'),
  url: z.string().max(2048).optional().describe('For http: an https address.'),
  headers: texts.optional().describe('For http. Credentials only as "${NAME}".'),
  command: z.string().min(1).max(1024).optional().describe('For stdio.'),
  args: z.array(z.string().max(4096)).max(64).optional(),
  env: texts.optional().describe('For stdio.'),
  enabled: z.boolean().default(true),
});

export const setMcpServersTool = defineTool({
  name: 'set_mcp_servers',
  title: 'Set MCP servers',
  description:
    'Replaces the list of own MCP servers of an agent: read it with get_agent and pass what shall stay too. ${NAME} stands for key NAME of Secret <agent>-secrets. Services of the catalog: attach_connector.',
  effect: 'destructive',
  idempotent: true,
  input: z.object({
    agentId: agentIdArgument,
    servers: z.array(server).max(MAX_MCP_SERVERS).describe('The whole new list.'),
  }),
  handler: ({ agentId, servers }, { caller, services }) => setMcpServers(services.agents, caller, agentId, servers),
});
