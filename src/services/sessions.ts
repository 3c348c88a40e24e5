/** Conversations of an agent, from its runs and their transcripts (reference tools.md 3, 4). */
import { AgentRuns } from '../api/v1alpha1/agent-run.js';
import type { AgentRun } from '../api/v1alpha1/agent-run.js';
import type { RunEvent } from '../protocol/run.js';
import { readTranscript } from '../transcript/chunk-store.js';
import { ARCHIVE_AWAY_NOTE, findArchived, isShown, readArchivedTranscript, withArchived } from './archived-runs.js';
import type { MergedRuns } from './archived-runs.js';
import { INDEX, orUndefined } from './caches.js';
import type { Caller } from './key-check.js';
import { pendingOfSession } from './pending.js';
import type { PendingRecord } from './pending.js';
import { inputOf } from './runs.js';
import { byAcceptance, compare, findAgent, isRunOf, kubeCall, sessionRuns } from './scope.js';
import type { ScopeDeps } from './scope.js';
import { UserError } from './user-error.js';
import { isoTime, projectRun } from './views.js';
import type { AgentView, RunView } from './views.js';

/** Longest text of a message in get_session, in characters. */
export const MAX_SESSION_TEXT = 4_000;
/** Runs whose transcripts are read at the same time. */
const RUNS_AT_ONCE = 8;

/** The Session record. */
export interface SessionRecord {
  sessionId: string;
  title: string;
  runCount: number;
  /** The question or approval that waits for an answer. */
  pending: PendingRecord | null;
  createdAt: string;
  updatedAt: string;
}

/** `runs` are those of one session, oldest first, at least one. */
function record(sessionId: string, runs: readonly RunView[]): SessionRecord {
  const titled = runs.find(({ title }) => title !== undefined);
  const updated = runs.map(({ createdAt, finishedAt }) => (finishedAt === undefined ? createdAt : isoTime(finishedAt)));
  return {
    sessionId,
    title: titled?.title ?? '',
    runCount: runs.length,
    pending: pendingOfSession(runs),
    createdAt: runs[0]?.createdAt ?? '',
    updatedAt: updated.reduce((latest, time) => (time > latest ? time : latest), ''),
  };
}

export interface SessionQuery {
  /** Only sessions that wait for an answer. */
  pending: boolean;
  limit: number;
}

/** The result of list_sessions, the latest updatedAt first. No request. */
export async function listSessions(deps: ScopeDeps, caller: Caller, id: string, { pending, limit }: SessionQuery) {
  const agent = await findAgent(deps, caller, id);
  const sessions = [...runsBySession(deps, agent)]
    .map(([sessionId, runs]) => record(sessionId, runs.sort(byAcceptance)))
    .filter((session) => !pending || session.pending !== null)
    .sort((a, b) => compare(b.updatedAt, a.updatedAt) || compare(b.sessionId, a.sessionId));
  return { sessions: sessions.slice(0, limit) };
}

function runsBySession({ caches }: Pick<ScopeDeps, 'caches'>, agent: AgentView): Map<string, RunView[]> {
  const sessions = new Map<string, RunView[]>();
  for (const run of caches.AgentRun.byIndex(INDEX.runsOfAgent, `${agent.namespace}/${agent.name}`)) {
    if (!isRunOf(agent, run)) continue;
    const runs = sessions.get(run.sessionId);
    if (runs === undefined) sessions.set(run.sessionId, [run]);
    else runs.push(run);
  }
  return sessions;
}

/** A message as get_session shows it. */
export interface SessionMessage {
  runId: string;
  role: 'user' | 'agent';
  text: string;
  /** Whether text is only the beginning. */
  truncated: boolean;
  at: string;
}

export interface MessageQuery {
  sessionId: string;
  limit: number;
  /** Messages to leave out, counted from the newest. */
  offset: number;
}

/** The result of get_session. One GET and the chunks of the transcript for each run that is needed, newest first. */
export async function getSession(deps: ScopeDeps, caller: Caller, id: string, query: MessageQuery) {
  const agent = await findAgent(deps, caller, id);
  const { runs, archived, incomplete } = await allRuns(deps, agent, query.sessionId);
  if (runs.length === 0) {
    throw new UserError(
      'session not found: this agent has no session with this sessionId; list_sessions shows the latest',
    );
  }
  const end = query.offset + query.limit;
  // One more than asked for tells whether there is a next page.
  const read = (run: RunView) => messagesOf(deps, agent, run, archived.has(run.uid));
  const newestFirst = await newestMessages(runs, end + 1, read);
  return {
    ...record(query.sessionId, runs),
    messages: newestFirst.slice(query.offset, end).reverse(),
    nextOffset: newestFirst.length > end ? end : null,
    ...(incomplete ? { note: ARCHIVE_AWAY_NOTE } : {}),
  };
}

/** The runs of a session in the cluster and in the archive, oldest first. */
async function allRuns(deps: ScopeDeps, agent: AgentView, sessionId: string): Promise<MergedRuns> {
  const live = await sessionRuns(deps, agent, sessionId, (of, run) => isShown(deps, of, run));
  const merged = await withArchived(deps, agent, live, (archive, scope, signal) =>
    archive.session(scope, sessionId, signal),
  );
  return { ...merged, runs: merged.runs.sort(byAcceptance) };
}

/** At least `wanted` messages of the session, newest first, unless it has fewer. */
async function newestMessages(
  runs: readonly RunView[],
  wanted: number,
  read: (run: RunView) => Promise<SessionMessage[]>,
): Promise<SessionMessage[]> {
  const messages: SessionMessage[] = [];
  for (let last = runs.length; last > 0 && messages.length < wanted; last -= RUNS_AT_ONCE) {
    const batch = runs.slice(Math.max(0, last - RUNS_AT_ONCE), last).reverse();
    const ofRuns = await Promise.all(batch.map(read));
    messages.push(...ofRuns.flatMap((ofRun) => ofRun.reverse()));
  }
  return messages;
}

/** The messages of one run, oldest first; none when it was removed meanwhile. */
async function messagesOf(
  deps: ScopeDeps,
  agent: AgentView,
  { namespace, name, uid }: RunView,
  isArchived: boolean,
): Promise<SessionMessage[]> {
  const live = isArchived
    ? undefined
    : await kubeCall(deps, (signal) => orUndefined(deps.api.get(AgentRuns, { namespace, name }, { signal })));
  const run = live?.metadata.uid === uid ? live : await findArchived(deps, agent, { uid });
  if (run === undefined) return [];
  const { events } =
    run.status?.transcript?.state === 'archived'
      ? await readArchivedTranscript(deps, agent, run)
      : await kubeCall(deps, () => readTranscript(deps.api, run));
  return runMessages(run, events);
}

/**
 * What was said in a run: the input, then every text of the agent. What the transcript does not hold (a run that has not
 * begun, was cut or has expired) is filled in from the run itself.
 */
export function runMessages(run: AgentRun, events: readonly RunEvent[]): SessionMessage[] {
  const { name } = run.metadata;
  const { createdAt } = projectRun(run);
  const said = events.flatMap((event) => (event.type === 'message' ? [event] : []));
  const heard = said.find(({ message }) => message.role === 'user');
  const input = heard?.message.role === 'user' ? heard.message.text : inputOf(run);
  const answers = said.flatMap(({ message, at }) =>
    message.role === 'assistant' && message.text !== '' ? [{ text: message.text, at: isoTime(at) }] : [],
  );
  const output = run.status?.output;
  if (answers.length === 0 && output !== undefined && output !== '') {
    answers.push({ text: output, at: isoTime(run.status?.finishedAt ?? createdAt) });
  }
  return [
    ...(input === null ? [] : [messageOf(name, 'user', { text: input, at: createdAt })]),
    ...answers.map((answer) => messageOf(name, 'agent', answer)),
  ];
}

function messageOf(runId: string, role: SessionMessage['role'], { text, at }: { text: string; at: string }) {
  const cut = cutCharacters(text);
  return { runId, role, text: cut, truncated: cut.length < text.length, at };
}

/** Never between the two halves of a character. */
function cutCharacters(text: string): string {
  if (text.length <= MAX_SESSION_TEXT) return text;
  const cut = text.slice(0, MAX_SESSION_TEXT);
  return cut.isWellFormed() ? cut : cut.slice(0, -1);
}
