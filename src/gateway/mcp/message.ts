/** What a run may say to an MCP server: tools, and what a session needs. Pure. */
import { z } from 'zod';
import { boundedRecord } from '../../protocol/bounded-parse.js';
import { Amount, Text } from '../../protocol/sizes.js';
import { GatewayError } from '../errors.js';

const METHODS: ReadonlySet<string> = new Set(['initialize', 'server/discover', 'ping', 'tools/list', 'tools/call']);

const Id = z.union([Text, Amount]);
const Message = z.union([
  z.looseObject({
    jsonrpc: z.literal('2.0'),
    id: Id.optional(),
    method: z.string().max(128),
    params: boundedRecord(Text, z.unknown(), 10_000).optional(),
  }),
  // Answers of the runner to a server.
  z.looseObject({ jsonrpc: z.literal('2.0'), id: Id, result: z.unknown(), method: z.undefined().optional() }),
  z.looseObject({ jsonrpc: z.literal('2.0'), id: Id, error: z.unknown(), method: z.undefined().optional() }),
]);

export interface McpMessage {
  /** To be sent on: what was checked, and not the bytes that came. */
  json: string;
  method: string | undefined;
  /** Set for a message that gets an answer. */
  id: string | number | undefined;
  /** With method `tools/call`. */
  call: { tool: string; input: unknown } | undefined;
}

/** Throws 400 for anything else: a batch, another method. */
export function readMessage(body: unknown): McpMessage {
  const parsed = Message.safeParse(body);
  if (!parsed.success) throw notPassed('this is no JSON-RPC message of MCP');
  const { id, method, params } = parsed.data as { id?: string | number; method?: string; params?: unknown };
  if (method !== undefined && !METHODS.has(method) && !method.startsWith('notifications/')) {
    throw notPassed(`the gateway passes no ${method.slice(0, 64)} to MCP servers`);
  }
  if (method !== undefined && METHODS.has(method) && id === undefined) throw notPassed(`${method} needs an id`);
  const json = JSON.stringify(parsed.data);
  const message = { json, method, id: method === undefined ? undefined : id };
  return { ...message, call: method === 'tools/call' ? callOf(params) : undefined };
}

function callOf(params: unknown): { tool: string; input: unknown } {
  const { name, arguments: input } = (params ?? {}) as { name?: unknown; arguments?: unknown };
  if (typeof name !== 'string' || name === '') throw notPassed('tools/call needs params.name');
  return { tool: name, input: input ?? {} };
}

function notPassed(message: string): GatewayError {
  return new GatewayError(400, message, { type: 'NotPassed' });
}
