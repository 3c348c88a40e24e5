/**
 * One posted message to its answer: the methods of spec 4.1 and the order of checks. Knows no HTTP; the
 * wire form of tool results is made here and nowhere else.
 * See docs/architecture.md#mcp-calls.
 */
import type { Logger } from '../observability/logger.js';
import type { Clock } from '../runtime/clock.js';
import type { Caller } from '../services/keys/key-check.js';
import { UserError } from '../api/user-error.js';
import { checkArguments } from './arguments.js';
import type { Tool, ToolCall } from './define-tool.js';
import { METHOD_NOT_FOUND, errorBytes, parseIncoming, resultBytes, toolError, toolResult } from './json-rpc.js';
import type { Piece } from './memoized-text.js';
import type { ToolMetrics } from './metrics.js';
import { initializeResult } from './protocol.js';
import type { Registry } from './registry.js';
import { toolFailure } from './tool-error.js';
import type { ToolServices } from './tool-services.js';

export interface DispatcherDeps {
  registry: Registry;
  services: ToolServices;
  /** Version of the product for serverInfo. */
  version: string;
  log: Logger;
  metrics: ToolMetrics;
  clock: Clock;
}

export interface Dispatcher {
  /** The body of the answer in pieces, or undefined when nothing is answered (202). Rejects only for a fault of our own. */
  dispatch(body: Uint8Array, caller: Caller, gone: AbortSignal): Promise<readonly Buffer[] | undefined>;
}

export function createDispatcher(deps: DispatcherDeps): Dispatcher {
  return {
    async dispatch(body, caller, gone) {
      const message = parseIncoming(body);
      if (message.kind === 'notification') return undefined;
      if (message.kind === 'invalid') return errorBytes(message.id, message.code, message.message);
      const { id, method, params } = message;
      switch (method) {
        case 'initialize':
          return resultBytes(id, JSON.stringify(initializeResult(params, deps.version)));
        case 'ping':
          return resultBytes(id, '{}');
        case 'tools/list':
          return resultBytes(id, deps.registry.list);
        case 'tools/call':
          return resultBytes(id, ...(await callTool(deps, params, { caller, services: deps.services, gone })));
        default:
          return errorBytes(
            id,
            METHOD_NOT_FOUND,
            'Method not found: this server knows initialize, ping, tools/list and tools/call',
          );
      }
    },
  };
}

/** The result of tools/call as pieces of JSON text. Never rejects: every failure of a tool is a result (spec 7). */
async function callTool(deps: DispatcherDeps, params: unknown, call: ToolCall): Promise<readonly Piece[]> {
  const started = deps.clock.monotonic();
  let tool: Tool | undefined;
  let result: readonly Piece[];
  let ids: Record<string, string> = {};
  let failed = false;
  try {
    const { name, args } = readParams(params);
    tool = deps.registry.get(name);
    if (tool === undefined) throw new UserError('unknown tool: tools/list shows the names');
    const { input, payload } = await runTool(tool, args, call);
    result = toolResult(payload);
    ids = idsOf({ ...input, ...payload });
  } catch (error) {
    failed = true;
    const failure = toolFailure(error);
    if (failure.fault) deps.log.error({ err: error, tool: tool?.name }, 'tool failed');
    result = toolError(failure.message);
  }
  if (tool !== undefined) {
    audit(deps.log, tool, call.caller, failed ? { outcome: 'error' } : { outcome: 'ok', ...ids });
    deps.metrics.called(tool.name, failed ? 'error' : 'ok', (deps.clock.monotonic() - started) / 1000);
  }
  return result;
}

function readParams(params: unknown): { name: string; args: Record<string, unknown> } {
  if (!isObject(params)) throw new UserError('params must be an object with name and arguments');
  const { name, arguments: args } = params;
  if (typeof name !== 'string') throw new UserError('params.name must be the name of a tool (a string)');
  if (args === undefined || args === null) return { name, args: {} };
  if (!isObject(args)) throw new UserError('params.arguments must be an object');
  return { name, args };
}

function isObject(value: unknown): value is Record<string, unknown> {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}

/** Order of checks: right of the key, right of the account, arguments, confirm, then the handler: existence and the rest. */
async function runTool(tool: Tool, args: Record<string, unknown>, call: ToolCall) {
  if (call.caller.readOnly && !tool.readOnly) {
    throw new UserError(`this API key is read-only: ${tool.name} needs a key without readOnly`);
  }
  tool.gate?.(call);
  for (const [name, instead] of Object.entries(tool.refused)) {
    if (args[name] !== undefined && args[name] !== null)
      throw new UserError(`argument "${name}" is not possible here: ${instead}`);
  }
  const input = checkArguments(tool.input, args);
  if (tool.confirm && args['confirm'] !== true) {
    throw new UserError(
      `${tool.name} cannot be undone. Ask the account owner; once they have agreed, call again with confirm: true.`,
    );
  }
  return { input, payload: await tool.handler(input, call) };
}

const ID_FIELDS = ['agentId', 'spaceId', 'slug', 'runId', 'sessionId', 'templateId', 'templateAgentId'] as const;

/** Only ids, and only of a call that worked: then they are names of objects and not whatever a client sent. */
function idsOf(values: Record<string, unknown>): Record<string, string> {
  return Object.fromEntries(
    ID_FIELDS.flatMap((field) => (typeof values[field] === 'string' ? [[field, values[field]]] : [])),
  );
}

/** One line a call; writes and answers with secrets at info, other reads at debug. Never texts or URLs (spec 5.5). */
function audit(log: Logger, tool: Tool, caller: Caller, fields: Record<string, string>): void {
  const { keyPrefix: key, workspace, address } = caller;
  log[tool.readOnly && !tool.showsSecrets ? 'debug' : 'info'](
    { audit: true, tool: tool.name, key, workspace, address, ...fields },
    'tool call',
  );
}
