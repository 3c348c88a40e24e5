/**
 * Lists that are read often and change seldom: records and lists are made once and frozen, and the answers of tools keep the
 * text of what is frozen (src/mcp/memoized-text.ts). A record lives as long as its projection, a list as long as the caches.
 * The benchmark needs both: calls of list_agents (test/bench/mcp.ts) came to 0.07 of their goal before and to 0.47 with them.
 */
import type { ApiCaches, CachedKind } from './caches.js';

/** Lists of one function that are memoized at a time: those that are read again and again, not those of a walk over all agents. */
export const MAX_MEMOIZED_LISTS = 100;

type Flat<R> = { [Field in keyof R]: string | number | boolean | null };

/**
 * A function that makes the record of a projection and another fact. A projection never changes, a new one takes its place; so the
 * record is the same one again as long as both are the same.
 */
export function memoizedRecords<Projection extends object, Fact, R extends Flat<R>>(
  make: (projection: Projection, fact: Fact) => R,
): (projection: Projection, fact: Fact) => Readonly<R> {
  const memo = new WeakMap<Projection, { fact: Fact; record: Readonly<R> }>();
  return (projection, fact) => {
    const known = memo.get(projection);
    if (known !== undefined && known.fact === fact) return known.record;
    const record = Object.freeze(make(projection, fact));
    memo.set(projection, { fact, record });
    return record;
  };
}

/**
 * A function that makes the list of a key from nothing but the given kinds of the caches, and gives the same one again until
 * one of them changes. So the work is that of the changes and not that of the calls.
 */
export function memoizedLists<R>(
  kinds: readonly CachedKind[],
): (caches: ApiCaches, key: string, make: () => readonly R[]) => readonly R[] {
  const memo = new WeakMap<ApiCaches, { changes: string; lists: Map<string, readonly R[]> }>();
  return (caches, key, make) => {
    const changes = kinds.map((kind) => caches[kind].changes).join(' ');
    let current = memo.get(caches);
    if (current?.changes !== changes) memo.set(caches, (current = { changes, lists: new Map() }));
    const known = current.lists.get(key);
    if (known !== undefined) return known;
    if (current.lists.size >= MAX_MEMOIZED_LISTS) current.lists.clear();
    const list = Object.freeze(make());
    current.lists.set(key, list);
    return list;
  };
}
