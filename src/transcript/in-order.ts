/** The events of chunks in their order: a chunk that made room for newer events is not where its events belong. Pure. */
import type { RunEvent } from '../protocol/run.js';
import { isClearedJson } from '../run/session/cleared-result.js';

/** Events of several chunks in their order, each once. */
export function inOrder(events: readonly RunEvent[]): RunEvent[] {
  const bySeq = new Map<number, RunEvent>();
  for (const event of events) {
    const known = bySeq.get(event.seq);
    // Of two copies one may be cut already.
    if (known === undefined || hasCutResult(known)) bySeq.set(event.seq, event);
  }
  return [...bySeq.values()].sort((a, b) => a.seq - b.seq);
}

/** Whether the mark stands in it. */
export function hasCutResult(event: RunEvent): boolean {
  if (event.type === 'tool') return isClearedJson(event.result);
  return event.type === 'message' && event.message.role === 'tool' && isClearedJson(event.message.result);
}
