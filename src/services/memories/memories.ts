/** Notes of an agent as list_memories shows them; agents write them through the gateway. */
import type { Caller } from '../keys/key-check.js';
import { findAgent } from '../scope.js';
import type { ScopeDeps } from '../scope.js';
import { BY_AGENT, agentKey } from '../../projections/indexes.js';
import { compare } from '../../runtime/compare.js';

export interface MemoryQuery {
  /** Words that must all be in a note, in any case; all notes when absent. */
  query?: string | undefined;
  limit: number;
}

/** The result of list_memories, newest first. No request. */
export async function listMemories(deps: ScopeDeps, caller: Caller, id: string, { query, limit }: MemoryQuery) {
  const agent = await findAgent(deps, caller, id);
  const words = (query ?? '').toLowerCase().split(/\s+/).filter(Boolean);
  const memories = deps.caches.AgentMemory.byIndex(BY_AGENT, agentKey(agent.namespace, agent.name))
    .filter((memory) => !memory.deleting && containsAll(memory.text, words))
    .sort((a, b) => compare(b.createdAt, a.createdAt) || compare(b.name, a.name))
    .slice(0, limit)
    .map(({ name, text, createdAt, updatedAt }) => ({ id: name, text, createdAt, updatedAt }));
  return { memories };
}

function containsAll(text: string, words: readonly string[]): boolean {
  const lower = text.toLowerCase();
  return words.every((word) => lower.includes(word));
}
