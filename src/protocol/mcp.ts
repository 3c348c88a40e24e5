/**
 * MCP servers and connectors of a run: the claim names them, and the runner's client of one over HTTP talks to
 *
 *   POST, DELETE /gateway/mcp/{server}   JSON-RPC of MCP Streamable HTTP; the run comes from the token
 *
 * where the gateway adds address and credentials. Runner and gateway make the same tool names, so that an approval means
 * the same to both.
 */
import { createHash } from 'node:crypto';
import { z } from 'zod';
import { boundedRecord } from './bounded-parse.js';
import { Name, Text, listOf } from './sizes.js';

/** Family of all tools of MCP servers, for approvals. */
export const MCP_FAMILY = 'mcp';
/** Names of servers of an agent, and slugs of connectors. */
export const MCP_SERVER = /^[A-Za-z0-9][A-Za-z0-9_-]{0,62}$/;
/** What every model provider accepts as a name. */
const MAX_NAME = 64;
const HASH_DIGITS = 8;

/** Largest message of a client. */
export const MAX_MCP_MESSAGE_BYTES = 1024 * 1024;
/** Largest answer of a server that is passed on, and how deep its JSON may nest. */
export const MAX_MCP_ANSWER_BYTES = 8 * 1024 * 1024;
export const MAX_MCP_ANSWER_DEPTH = 128;

export const McpServer = z.discriminatedUnion('transport', [
  z.object({
    name: z.string().max(63).regex(MCP_SERVER),
    transport: z.literal('http'),
    path: Name.describe('On the gateway.'),
  }),
  z.object({
    name: z.string().max(63).regex(MCP_SERVER),
    transport: z.literal('stdio'),
    command: Text,
    args: listOf(Text),
    env: boundedRecord(Name, Text, 1000).describe('With the values of references filled in.'),
  }),
]);
export type McpServer = z.output<typeof McpServer>;

/** Where a server over HTTP is, on the gateway. */
export function mcpPath(server: string): string {
  return `/gateway/mcp/${server}`;
}

/**
 * `server__tool`. Two tools never share a name: one that does not stand in it unchanged, or could be read in two ways,
 * ends with a digest of itself. Pure.
 */
export function mcpToolName(server: string, tool: string): string {
  const plain = `${server}__${tool}`;
  const isClear = /^[a-zA-Z][a-zA-Z0-9_-]*$/.test(plain) && /[^_]$/.test(server) && !server.includes('__');
  if (isClear && tool !== '' && plain.length <= MAX_NAME) return plain;
  const digest = createHash('sha256')
    .update(JSON.stringify([server, tool]))
    .digest('hex')
    .slice(0, HASH_DIGITS);
  const legal = plain.replace(/[^a-zA-Z0-9_-]/g, '_').replace(/^(?![a-zA-Z])/, 'm');
  return `${legal.slice(0, MAX_NAME - HASH_DIGITS - 1)}_${digest}`;
}
