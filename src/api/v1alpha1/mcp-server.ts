/** An MCP server that a person gave to an agent (spec 2, mcpServers). */
import { z } from 'zod';

export const MCP_TRANSPORTS = ['http', 'stdio'] as const;
export const MAX_MCP_SERVERS = 20;
/** Also a part of the names of its tools, so only what every model provider accepts there. */
export const MCP_SERVER_NAME = /^[A-Za-z0-9][A-Za-z0-9_-]{0,31}$/;

const value = z.string().max(4096).describe('Value; `${NAME}` stands for key NAME of Secret `<agent>-secrets`.');

/** Named values as a list: an object with free keys has no structural schema that bounds its keys. */
const Header = z.object({
  name: z
    .string()
    .max(128)
    .regex(/^[A-Za-z0-9!#$%&'*+.^_|~-]+$/)
    .describe('Name of the HTTP header.'),
  value,
});

const EnvironmentVariable = z.object({
  name: z
    .string()
    .max(128)
    .regex(/^[A-Za-z_][A-Za-z0-9_]*$/)
    .describe('Name of the environment variable.'),
  value,
});

export const McpServerSpec = z.object({
  name: z.string().max(32).regex(MCP_SERVER_NAME).describe('Name, unique for the agent; tools carry it as a prefix.'),
  transport: z
    .enum(MCP_TRANSPORTS)
    .default('http')
    .describe('http = Streamable HTTP; stdio = a command beside the tools.'),
  url: z
    .string()
    .max(2048)
    .regex(/^https?:\/\/[^\s]+$/)
    .optional()
    .describe('Address; needed for http.'),
  headers: z.array(Header).max(32).optional().describe('Headers of every request, for http.'),
  command: z.string().min(1).max(1024).optional().describe('Program; needed for stdio.'),
  args: z.array(z.string().max(4096)).max(64).optional().describe('Arguments of the program.'),
  env: z.array(EnvironmentVariable).max(64).optional().describe('Environment of the program.'),
  enabled: z.boolean().default(true).describe('Whether runs are connected to it.'),
});
export type McpServerSpec = z.output<typeof McpServerSpec>;
