/**
 * The session history: what a run is told of the conversation before it. The rule stands here; where the earlier runs and
 * their transcripts come from, cluster or archive, is src/gateway/runs/earlier-runs.ts.
 */
import type { AgentRun } from '../../api/v1alpha1/agent-run.js';
import type { RunEvent, TranscriptMessage } from '../../protocol/run.js';
import type { Transcript } from '../../transcript/chunk-store.js';
import { claimOrder } from './order.js';

export const MAX_HISTORY_BYTES = 1024 * 1024;
export const MAX_HISTORY_RUNS = 50;

export interface HistorySources {
  /** The run whose conversation goes on. */
  previous: AgentRun | undefined;
  /** Known other runs of the session that a pod took. */
  others(): readonly AgentRun[];
  transcript(run: AgentRun): Promise<Transcript>;
  /** Whether something could not be read so far; asked when the rest is read. */
  isIncomplete: boolean;
}

const INCOMPLETE =
  '(Earlier messages of this conversation are archived, and the archive cannot be read at the moment.)';

/**
 * Messages of the session before a run, newest that fit in 1 MiB and 50 runs: of the previous run, and of the ones before it
 * in the order of their claims. `openCall` is the call at the end that stays without a result, because the run itself brings
 * it. What cannot be read is named in a first message, so that the agent does not take the rest for all.
 */
export async function historyOf(sources: HistorySources, openCall?: string): Promise<TranscriptMessage[]> {
  const said = await conversationOf(sources, openCall);
  return sources.isIncomplete ? [{ role: 'user', text: INCOMPLETE }, ...said] : said;
}

async function conversationOf(sources: HistorySources, openCall: string | undefined): Promise<TranscriptMessage[]> {
  const { previous } = sources;
  if (previous === undefined) return [];
  const chain = chainOf(previous, sources.others());
  let messages: TranscriptMessage[] = [];
  let bytes = 0;
  let compaction: OpenCompaction | undefined;
  for (const earlier of chain) {
    const { events } = await sources.transcript(earlier);
    const part: HistoryPart = compaction === undefined ? afterCompaction(events) : beforeCompaction(events, compaction);
    compaction = part.compaction;
    const own = part.messages;
    const kept = newestWithin(own, MAX_HISTORY_BYTES - bytes);
    bytes += kept.reduce((sum, message) => sum + sizeOf(message), 0);
    messages = [...kept, ...messages];
    if (kept.length < own.length || compaction?.missing === 0) break;
  }
  if (compaction !== undefined) messages = [{ role: 'user', text: compaction.text }, ...messages];
  return repaired(messages, openCall);
}

/** A summary, and how many of the messages before it are still to be found. */
interface OpenCompaction {
  text: string;
  missing: number;
}

interface HistoryPart {
  messages: TranscriptMessage[];
  compaction: OpenCompaction | undefined;
}

/** Of a run that was compacted: the messages since then and those that were kept before. */
function afterCompaction(events: readonly RunEvent[]): HistoryPart {
  const at = events.findLastIndex(({ type }) => type === 'compaction');
  const event = events[at];
  if (event?.type !== 'compaction') return { messages: messagesOf(events), compaction: undefined };
  const before = beforeCompaction(events.slice(0, at), { text: event.text, missing: event.kept });
  return { ...before, messages: [...before.messages, ...messagesOf(events.slice(at + 1))] };
}

function beforeCompaction(events: readonly RunEvent[], { text, missing }: OpenCompaction): HistoryPart {
  const all = messagesOf(events);
  const messages = all.slice(Math.max(0, all.length - missing));
  return { messages, compaction: { text, missing: missing - messages.length } };
}

/** The previous run, then the ones claimed before it, newest first. */
function chainOf(previous: AgentRun, others: readonly AgentRun[]): AgentRun[] {
  const before = others
    .filter((other) => claimOrder(other) < claimOrder(previous))
    .sort((a, b) => (claimOrder(a) < claimOrder(b) ? 1 : -1));
  return [previous, ...before].slice(0, MAX_HISTORY_RUNS);
}

function messagesOf(events: readonly RunEvent[]): TranscriptMessage[] {
  return events.flatMap((event) => (event.type === 'message' ? [event.message] : []));
}

function newestWithin(messages: readonly TranscriptMessage[], maxBytes: number): TranscriptMessage[] {
  let bytes = 0;
  let first = messages.length;
  while (first > 0) {
    const message = messages[first - 1];
    if (message === undefined || bytes + sizeOf(message) > maxBytes) break;
    bytes += sizeOf(message);
    first -= 1;
  }
  return messages.slice(first);
}

function sizeOf(message: TranscriptMessage): number {
  return Buffer.byteLength(JSON.stringify(message));
}

const INTERRUPTED = JSON.stringify({ error: 'The run ended before this call had a result.' });

/**
 * A conversation that every model accepts: it begins with a user, each call has exactly one result right after it, and
 * results without a call are left out. A cut transcript or a run that died in the middle of a call needs this. `openCall`
 * is a call of the last assistant message that gets no result here.
 */
export function repaired(messages: readonly TranscriptMessage[], openCall?: string): TranscriptMessage[] {
  const last = messages.findLastIndex(({ role }) => role === 'assistant');
  const start = messages.findIndex(({ role }) => role === 'user');
  if (start === -1) return [];
  const whole: TranscriptMessage[] = [];
  for (let i = start; i < messages.length; i++) {
    const message = messages[i];
    if (message === undefined || message.role === 'tool') continue;
    whole.push(message);
    if (message.role !== 'assistant') continue;
    const results = resultsAfter(messages, i);
    for (const call of message.toolCalls ?? []) {
      if (i === last && call.id === openCall && !results.has(call.id)) continue;
      whole.push(
        results.get(call.id) ?? { role: 'tool', callId: call.id, tool: call.tool, result: INTERRUPTED, isError: true },
      );
    }
  }
  return whole;
}

function resultsAfter(messages: readonly TranscriptMessage[], index: number): Map<string, TranscriptMessage> {
  const results = new Map<string, TranscriptMessage>();
  for (const message of messages.slice(index + 1)) {
    if (message.role !== 'tool') break;
    results.set(message.callId, message);
  }
  return results;
}
