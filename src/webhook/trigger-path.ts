/**
 * The trigger URL's path, read from the raw URL: a framework would answer a malformed escape itself, and differently from
 * an unknown trigger.
 */
import { isSlug, parseAgentId } from '../api/names.js';
import type { AgentRef } from '../api/names.js';

/** The pattern for metrics and logs: the URL is a secret (spec 5.5). */
export const TRIGGER_ROUTE = '/api/t/:agent_id/:slug/:token';

const PREFIX = '/api/t';

/** What the path names, if it can name a trigger at all. */
export interface TriggerPath {
  agent: AgentRef;
  agentId: string;
  slug: string;
  token: string;
}

/** A raw URL in path and query; the query has no question mark. */
export function splitUrl(url: string): { path: string; query: string } {
  const mark = url.indexOf('?');
  return mark === -1 ? { path: url, query: '' } : { path: url.slice(0, mark), query: url.slice(mark + 1) };
}

/** Whether the path belongs to the trigger URL, well formed or not. */
export function isTriggerPath(path: string): boolean {
  return path === PREFIX || path.startsWith(`${PREFIX}/`);
}

/** The parts of `/api/t/{agent_id}/{slug}/{token}`; undefined when they are too few, too many or cannot be names. */
export function parseTriggerPath(path: string): TriggerPath | undefined {
  const segments = path.slice(PREFIX.length + 1).split('/');
  if (segments.length !== 3) return undefined;
  const [agentId, slug, token] = segments.map(decode);
  if (agentId === undefined || slug === undefined || !token) return undefined;
  const agent = parseAgentId(agentId);
  return agent === undefined || !isSlug(slug) ? undefined : { agent, agentId, slug, token };
}

function decode(segment: string): string | undefined {
  try {
    return decodeURIComponent(segment);
  } catch {
    // The only error is a malformed escape.
    return undefined;
  }
}
