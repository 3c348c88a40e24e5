/**
 * The session history: what a run is told of the conversation before it. The rule stands here; where the earlier runs and
 * their transcripts come from, cluster or archive, is src/gateway/runs/earlier-runs.ts.
 */
import type { AgentRun } from '../../api/v1alpha1/agent-run.js';
import type { RunEvent, TranscriptMessage } from '../../protocol/run.js';
import type { Transcript } from '../../transcript/chunk-store.js';
import { clearedResult, isClearable, isCleared } from './cleared-result.js';
import { clearResults, fitHistory, sizeOf, type Cleared, type Cuts } from './fit.js';
import { isRunReason, RUN_REASONS } from '../reasons.js';
import { claimOrder } from './order.js';

/** About half a million tokens: what exceeds the window of a model is the business of its runner. */
export const MAX_HISTORY_BYTES = 2 * 1024 * 1024;
/** Runs that are looked at in all; above {@link ALWAYS_READ_RUNS} only while there is room for what they hold. */
export const MAX_HISTORY_RUNS = 500;
const ALWAYS_READ_RUNS = 50;
/** Short runs are many: their transcripts are read beside each other. */
const READ_AT_ONCE = 8;

export interface HistorySources {
  /** The run whose conversation goes on. */
  previous: AgentRun | undefined;
  /** Known other runs of the session that a pod took. */
  others(): readonly AgentRun[];
  transcript(run: AgentRun): Promise<Transcript>;
  /** What a run was told; undefined when that is gone. */
  message(run: AgentRun): Promise<string | undefined>;
  /** Whether something could not be read so far; asked when the rest is read. */
  isIncomplete: boolean;
}

export interface History {
  messages: TranscriptMessage[];
  /** What a person should know about it; empty when everything is there as it was. */
  warnings: string[];
}

/**
 * Messages of the session before a run, of the previous run and of the ones before it in the order of their claims, within
 * {@link MAX_HISTORY_BYTES} as far as that goes without cutting what the person said. `openCall` is the call at the end that
 * stays without a result, because the run itself brings it. What is missing or cut is named in a first message, so that the
 * agent does not take the rest for all.
 */
export async function historyOf(sources: HistorySources, openCall?: string): Promise<History> {
  const read = await conversationOf(sources);
  const whole = repaired(read.messages, openCall);
  const { messages, cuts } = fitHistory(whole, { maxBytes: MAX_HISTORY_BYTES, openCall, cleared: read.cleared });
  const isIncomplete = sources.isIncomplete;
  const begins = messages.length === 0 || messages[0]?.role === 'user';
  const notes = notesOf({ ...read.gaps, cuts, isIncomplete, isHeadless: !begins });
  if (notes.length === 0) return { messages, warnings: [] };
  const text = notes.map(({ agent }) => `(${agent})`).join('\n');
  return { messages: [{ role: 'user', text }, ...messages], warnings: notes.map(({ person }) => person) };
}

/** What of the conversation could not be had. */
interface Gaps {
  /** Runs before the newest ones that are read. */
  unread: number;
  /** Runs whose transcript has holes. */
  truncated: number;
  /** Runs whose transcript was removed. */
  expired: number;
}

interface Read {
  messages: TranscriptMessage[];
  cleared: Cleared;
  gaps: Gaps;
}

async function conversationOf(sources: HistorySources): Promise<Read> {
  const { previous } = sources;
  const gaps: Gaps = { unread: 0, truncated: 0, expired: 0 };
  const cleared: Cleared = { results: 0, bytes: 0 };
  if (previous === undefined) return { messages: [], cleared, gaps };
  const all = chainOf(previous, sources.others());
  let messages: TranscriptMessage[] = [];
  let bytes = 0;
  let compaction: OpenCompaction | undefined;
  let read = 0;
  for await (const { earlier, transcript } of transcriptsOf(sources, all.slice(0, MAX_HISTORY_RUNS))) {
    if (read >= ALWAYS_READ_RUNS && bytes > MAX_HISTORY_BYTES) break;
    read += 1;
    const { events: stored, state } = transcript;
    const events = [...(await said(sources, earlier, stored)), ...stored, ...endOf(earlier)];
    const isOnlyShorter = state === 'truncated' && earlier.status?.transcript?.onlyResultsCut === true;
    if ((state === 'truncated' && !isOnlyShorter) || state === 'expired') gaps[state] += 1;
    const part: HistoryPart = compaction === undefined ? afterCompaction(events) : beforeCompaction(events, compaction);
    compaction = part.compaction;
    // Cut when they were stored: the run was longer than a transcript.
    cleared.results += part.messages.filter(isCleared).length;
    // Newer ones alone are too much: none of these results can stay, and not all of them must be held at once.
    const own =
      bytes > MAX_HISTORY_BYTES ? clearResults(part.messages) : { messages: part.messages, results: 0, bytes: 0 };
    cleared.results += own.results;
    cleared.bytes += own.bytes;
    bytes += own.messages.reduce((sum, message) => sum + sizeOf(message), own.bytes);
    messages = [...own.messages, ...messages];
    if (compaction?.missing === 0) break;
  }
  if (compaction === undefined) return { messages, cleared, gaps: { ...gaps, unread: all.length - read } };
  const { text, missing } = compaction;
  const kept = withClearedResults(messages, Math.max(0, compaction.cleared - missing));
  return { messages: [{ role: 'user', text }, ...kept], cleared, gaps };
}

/** The transcripts of runs, in their order; the newest ones one by one, since often no more of them are needed. */
async function* transcriptsOf(
  sources: HistorySources,
  runs: readonly AgentRun[],
): AsyncGenerator<{ earlier: AgentRun; transcript: Transcript }> {
  for (let next = 0; next < runs.length;) {
    const batch = runs.slice(next, next + (next < ALWAYS_READ_RUNS ? 1 : READ_AT_ONCE));
    next += batch.length;
    const transcripts = await Promise.all(
      batch.map(async (earlier) => ({ earlier, transcript: await sources.transcript(earlier) })),
    );
    yield* transcripts;
  }
}

/** What a person said to a run that was lost before anything of it was stored. */
async function said(sources: HistorySources, run: AgentRun, stored: readonly RunEvent[]): Promise<RunEvent[]> {
  const { state = 'full' } = run.status?.transcript ?? {};
  if (state !== 'full' || stored.some(({ type }) => type === 'message')) return [];
  const text = await sources.message(run);
  return text === undefined ? [] : [messageEvent({ role: 'user', text })];
}

/** That a run did not come to its own end, and why: nobody said it, and the agent must know it. */
function endOf({ status }: AgentRun): RunEvent[] {
  const { phase, reason } = status ?? {};
  if (phase !== 'error' && phase !== 'cancelled') return [];
  const cause = isRunReason(reason) ? ` ${RUN_REASONS[reason].cause}` : '';
  const before = `(The work on this was interrupted here.${cause} What is above was done; the last call may be done in part.)`;
  return [messageEvent({ role: 'user', text: '', frame: { before, after: '' } })];
}

function messageEvent(message: TranscriptMessage): RunEvent {
  return { type: 'message', v: 1, seq: 0, at: '', message };
}

/** The conversation as its run went on with it: the oldest so many results were cut there. */
function withClearedResults(messages: readonly TranscriptMessage[], count: number): TranscriptMessage[] {
  let left = count;
  return messages.map((message) => {
    if (left === 0 || (!isClearable(message) && !isCleared(message))) return message;
    left -= 1;
    return isClearable(message) ? clearedResult(message) : message;
  });
}

interface Note {
  /** For the model. */
  agent: string;
  /** For the record of the run. */
  person: string;
}

function notesOf(found: Gaps & { cuts: Cuts; isIncomplete: boolean; isHeadless: boolean }): Note[] {
  const notes: Note[] = [];
  if (found.isIncomplete) {
    const text = 'Earlier messages of this conversation are archived, and the archive cannot be read at the moment.';
    notes.push({ agent: text, person: text });
  }
  const gone = found.expired + found.truncated;
  if (gone > 0 || found.unread > 0) {
    const agent = 'Some earlier messages of this conversation are not there any more.';
    const why = [
      ...(found.unread > 0 ? [`${found.unread} older runs were not read`] : []),
      ...(found.expired > 0 ? [`the transcripts of ${found.expired} runs have expired`] : []),
      ...(found.truncated > 0 ? [`the transcripts of ${found.truncated} runs did not fit`] : []),
    ];
    notes.push({
      agent,
      person: `The agent was not told everything that was said in this session: ${why.join(', ')}.`,
    });
  } else if (found.isHeadless) {
    const text = 'The beginning of this conversation is not there any more.';
    notes.push({ agent: text, person: text });
  }
  if (found.cuts.results + found.cuts.reasoning + found.cuts.texts > 0) notes.push(noteOf(found.cuts));
  return notes;
}

function noteOf({ results, reasoning, texts }: Cuts): Note {
  const cut = [
    ...(results > 0 ? [`${results} results of tools`] : []),
    ...(reasoning > 0 ? [`the reasoning of ${reasoning} answers`] : []),
    ...(texts > 0 ? [`${texts} texts of the agent`] : []),
  ].join(', ');
  return {
    agent: `This conversation is too long to be kept whole. Cut are, the oldest first: ${cut}. What the user said is whole.`,
    person: `This session is longer than what is kept of a run, or than the ${MAX_HISTORY_BYTES} bytes that a run is given of it. Cut were, the oldest first: ${cut}. What people said was not cut.`,
  };
}

/** A summary, how many of the messages before it are still to be found, and how many of their results are cut. */
interface OpenCompaction {
  text: string;
  missing: number;
  cleared: number;
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
  const { text, kept, cleared = 0 } = event;
  const before = beforeCompaction(events.slice(0, at), { text, missing: kept, cleared });
  return { ...before, messages: [...before.messages, ...messagesOf(events.slice(at + 1))] };
}

function beforeCompaction(events: readonly RunEvent[], { text, missing, cleared }: OpenCompaction): HistoryPart {
  const all = messagesOf(events);
  const messages = all.slice(Math.max(0, all.length - missing));
  return { messages, compaction: { text, missing: missing - messages.length, cleared } };
}

/** The previous run, then the ones claimed before it, newest first. */
function chainOf(previous: AgentRun, others: readonly AgentRun[]): AgentRun[] {
  const before = others
    .filter((other) => claimOrder(other) < claimOrder(previous))
    .sort((a, b) => (claimOrder(a) < claimOrder(b) ? 1 : -1));
  return [previous, ...before];
}

function messagesOf(events: readonly RunEvent[]): TranscriptMessage[] {
  return events.flatMap((event) => (event.type === 'message' ? [event.message] : []));
}

const INTERRUPTED = JSON.stringify({
  error: 'Interrupted: the run ended before this call had a result. Check what it did before you call it again.',
});

/**
 * A conversation in which each call has exactly one result right after it, and results without a call are left out. A cut transcript or a run that died in the middle of a call needs this. `openCall`
 * is a call of the last assistant message that gets no result here.
 */
export function repaired(messages: readonly TranscriptMessage[], openCall?: string): TranscriptMessage[] {
  const last = messages.findLastIndex(({ role }) => role === 'assistant');
  const whole: TranscriptMessage[] = [];
  for (let i = 0; i < messages.length; i++) {
    const message = messages[i];
    if (message === undefined || message.role === 'tool') continue;
    whole.push(message);
    if (message.role !== 'assistant') continue;
    const results = resultsAfter(messages, i);
    for (const call of message.toolCalls ?? []) {
      // Some models use the same id twice: what comes first belongs to what comes first.
      const at = results.findIndex(({ callId }) => callId === call.id);
      if (at === -1 && i === last && call.id === openCall) continue;
      const none = { role: 'tool' as const, callId: call.id, tool: call.tool, result: INTERRUPTED, isError: true };
      whole.push(results.splice(at, at === -1 ? 0 : 1)[0] ?? none);
    }
  }
  return whole;
}

type ToolMessage = Extract<TranscriptMessage, { role: 'tool' }>;

function resultsAfter(messages: readonly TranscriptMessage[], index: number): ToolMessage[] {
  const rest = messages.slice(index + 1);
  const end = rest.findIndex(({ role }) => role !== 'tool');
  return rest.slice(0, end === -1 ? undefined : end).filter((message) => message.role === 'tool');
}
