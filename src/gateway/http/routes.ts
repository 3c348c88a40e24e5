/** The calls of the gateway by path. Route patterns, never paths, go to logs and metrics. */
import { mcpPath } from '../../protocol/mcp.js';
import { runPath } from '../../protocol/run.js';

export type RunCall = 'claim' | 'events' | 'tool' | 'finish';

export type Route =
  | { kind: 'run'; call: RunCall; namespace: string; run: string; pattern: string }
  | { kind: 'model'; provider: string; path: string; pattern: string }
  | { kind: 'mcp'; server: string; pattern: string }
  | { kind: 'none'; pattern: string };

const CALLS: readonly RunCall[] = ['claim', 'events', 'tool', 'finish'];
const RUN = /^\/internal\/v1\/runs\/([a-z0-9-]{1,63})\/([a-z0-9-]{1,63})\/([a-z]+)$/;
const MCP = /^\/gateway\/mcp\/([A-Za-z0-9_-]{1,63})$/;
const MODEL = /^\/gateway\/([a-z]{1,32})\/(.*)$/;

/** The route of a request target. */
export function routeOf(target: string): Route {
  const path = target.split('?', 1)[0] ?? '';
  const [, namespace, run, name] = RUN.exec(path) ?? [];
  const call = CALLS.find((known) => known === name);
  if (call !== undefined && namespace !== undefined && run !== undefined) {
    return { kind: 'run', call, namespace, run, pattern: runPath(':namespace', ':run', call) };
  }
  const [, server] = MCP.exec(path) ?? [];
  if (server !== undefined) return { kind: 'mcp', server, pattern: mcpPath(':server') };
  const [, provider, rest = ''] = MODEL.exec(path) ?? [];
  if (provider === undefined) return { kind: 'none', pattern: 'unknown' };
  return { kind: 'model', provider, path: rest, pattern: '/gateway/:provider' };
}
