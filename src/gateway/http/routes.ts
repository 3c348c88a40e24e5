/** The calls of the gateway by path. Route patterns, never paths, go to logs and metrics. */
import { feedPath } from '../../protocol/feed.js';
import { mcpPath } from '../../protocol/mcp.js';
import { runPath } from '../../protocol/run.js';

export type RunCall = 'claim' | 'events' | 'tool' | 'finish';

export type Route =
  | { kind: 'run'; call: RunCall; namespace: string; run: string; pattern: string }
  /** What the run does now, of the events after this sequence. */
  | { kind: 'feed'; namespace: string; run: string; after: number; pattern: string }
  | { kind: 'model'; provider: string; path: string; pattern: string }
  | { kind: 'mcp'; server: string; pattern: string }
  | { kind: 'none'; pattern: string };

const CALLS: readonly RunCall[] = ['claim', 'events', 'tool', 'finish'];
const RUN = /^\/internal\/v1\/runs\/([a-z0-9-]{1,63})\/([a-z0-9-]{1,63})\/([a-z]+)$/;
const MCP = /^\/gateway\/mcp\/([A-Za-z0-9_-]{1,63})$/;
const MODEL = /^\/gateway\/([a-z]{1,32})\/(.*)$/;

/** The route of a request target. */
export function routeOf(target: string): Route {
  const [path = '', query] = target.split('?', 2);
  const [, namespace, run, name] = RUN.exec(path) ?? [];
  if (name === 'feed' && namespace !== undefined && run !== undefined) {
    return { kind: 'feed', namespace, run, after: afterIn(query), pattern: feedPath(':namespace', ':run') };
  }
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

/** From the beginning on when it is no sequence. */
function afterIn(query: string | undefined): number {
  const after = new URLSearchParams(query).get('after') ?? '';
  return /^\d{1,15}$/.test(after) ? Number(after) : 0;
}
