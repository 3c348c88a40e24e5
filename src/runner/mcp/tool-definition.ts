/** What a model is told of a tool of an MCP server. Everything in it came from the server: data, bounded here. Pure. */
import { createHash } from 'node:crypto';
import { mcpToolName } from '../../protocol/mcp.js';
import type { RemoteTool } from './client.js';
import { cutUtf8 } from '../../runtime/text.js';

const MAX_DESCRIPTION_BYTES = 4096;
const MAX_SCHEMA_BYTES = 32 * 1024;
/** Some providers refuse the whole request for one of these at the top of one tool; the server checks its input anyway. */
const NOT_AT_THE_TOP = ['$schema', '$id', 'anyOf', 'oneOf', 'allOf', 'not', 'if', 'then', 'else', 'enum', 'const'];

export interface ToolDefinition {
  /** For the model. */
  name: string;
  /** At the server. */
  remoteName: string;
  description: string;
  /** JSON Schema of an object. */
  schema: Record<string, unknown>;
  /** By its own word. */
  isReadOnly: boolean;
  /** Of everything that the server said about it. */
  fingerprint: string;
}

/** Undefined for a tool that no model can be told of: its schema is none of an object, or too large. */
export function definitionOf(server: string, tool: RemoteTool): ToolDefinition | undefined {
  const { name, description = '', inputSchema, annotations } = tool;
  if (inputSchema['type'] !== undefined && inputSchema['type'] !== 'object') return undefined;
  const kept = Object.entries(inputSchema).filter(([key]) => !NOT_AT_THE_TOP.includes(key));
  const schema = { properties: {}, ...Object.fromEntries(kept), type: 'object' };
  if (Buffer.byteLength(JSON.stringify(schema)) > MAX_SCHEMA_BYTES) return undefined;
  const text = cutUtf8(description, MAX_DESCRIPTION_BYTES);
  return {
    name: mcpToolName(server, name),
    remoteName: name,
    description: text === '' ? `Tool ${cutUtf8(name, 128)} of MCP server ${server}.` : text,
    schema,
    isReadOnly: annotations?.readOnlyHint === true,
    fingerprint: createHash('sha256')
      .update(JSON.stringify([name, description, inputSchema]))
      .digest('hex'),
  };
}
