/** Conversations of an agent, from its runs and their transcripts. */
import { AgentRuns } from '../../api/v1alpha1/agent-run.js';
import type { AgentRun } from '../../api/v1alpha1/agent-run.js';
import type { RunEvent } from '../../protocol/run.js';
import { readTranscript } from '../../transcript/chunk-store.js';
import { agentText } from '../../transcript/said.js';
import type { ArchivedSession } from '../../archive/types.js';
import { orUndefined } from '../../kube/errors.js';
import {
  ARCHIVE_AWAY_NOTE,
  SESSION_AWAY,
  findArchived,
  readArchive,
  readArchivedTranscript,
  withArchived,
} from '../runs/archived-runs.js';
import type { FromArchive, MergedRuns } from '../runs/archived-runs.js';
import type { Caller } from '../keys/key-check.js';
import { pendingOfSession } from '../runs/pending.js';
import type { PendingRecord } from '../runs/pending.js';
import { readPage } from './message-pages.js';
import type { PageQuery } from './message-pages.js';
import { inputOf } from '../runs/runs.js';
import { findAgent } from '../scope.js';
import type { ScopeDeps } from '../scope.js';
import { UserError } from '../../api/user-error.js';
import { isoTime } from '../../api/time.js';
import { projectApiRun } from '../../projections/agent-run.js';
import type { ApiRun } from '../../projections/agent-run.js';
import type { ApiAgent } from '../../projections/agent.js';
import { BY_AGENT, agentKey } from '../../projections/indexes.js';
import { kubeCall, readsWithin } from '../kube-call.js';
import { sessionRuns, byAcceptance, isShown } from '../runs/find-run.js';
import { compare } from '../../runtime/compare.js';

/** Longest text of a message in get_session, in characters. */
export const MAX_SESSION_TEXT = 4_000;

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
function record(sessionId: string, runs: readonly ApiRun[]): SessionRecord {
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

/**
 * The result of list_sessions, the latest updatedAt first. No request to the cluster; one to the archive if there is one, and one
 * more for what it holds of listed sessions that are in the cluster.
 */
export async function listSessions(deps: ScopeDeps, caller: Caller, id: string, { pending, limit }: SessionQuery) {
  const agent = await findAgent(deps, caller, id);
  const live = runsBySession(deps, agent);
  const query = { except: [...live.keys()], waiting: pending, limit };
  const archived = await readArchive(deps, agent, (archive, scope, signal) => archive.sessions(scope, query, signal));
  const sessions = [
    ...[...live].map(([sessionId, runs]) => record(sessionId, runs.sort(byAcceptance))),
    ...archived.found.map(archivedRecord),
  ];
  const listed = latestFirst(sessions.filter((session) => !pending || session.pending !== null)).slice(0, limit);
  const parts = await archivedParts(deps, agent, listed, live);
  return {
    sessions: latestFirst(listed.map((session) => withPart(session, parts.found))),
    ...(archived.incomplete || parts.incomplete ? { note: ARCHIVE_AWAY_NOTE } : {}),
  };
}

function latestFirst(sessions: readonly SessionRecord[]): SessionRecord[] {
  return sessions.toSorted((a, b) => compare(b.updatedAt, a.updatedAt) || compare(b.sessionId, a.sessionId));
}

/** A session that is only in the archive. */
function archivedRecord({ sessionId, runs, createdAt, updatedAt, first, last }: ArchivedSession): SessionRecord {
  return {
    sessionId,
    title: projectApiRun(first).title ?? '',
    runCount: runs,
    pending: last === undefined ? null : pendingOfSession([projectApiRun(last)]),
    createdAt,
    updatedAt,
  };
}

/**
 * What the archive alone holds of sessions that are in the cluster as well: what retention has removed, and what people
 * have, which may be any run of a session.
 */
function archivedParts(
  deps: ScopeDeps,
  agent: ApiAgent,
  listed: readonly SessionRecord[],
  live: ReadonlyMap<string, readonly ApiRun[]>,
): Promise<FromArchive<ArchivedSession>> {
  const sessionIds = listed.map(({ sessionId }) => sessionId).filter((sessionId) => live.has(sessionId));
  if (sessionIds.length === 0) return Promise.resolve({ found: [], incomplete: false });
  const exceptUids = sessionIds.flatMap((sessionId) => live.get(sessionId) ?? []).map(({ uid }) => uid);
  const query = { sessionIds, exceptUids };
  return readArchive(deps, agent, (archive, scope, signal) => archive.partsOf(scope, query, signal));
}

/** The open question is that of the runs in the cluster: they are what the conversation goes on from. */
function withPart(session: SessionRecord, parts: readonly ArchivedSession[]): SessionRecord {
  const part = parts.find(({ sessionId }) => sessionId === session.sessionId);
  if (part === undefined) return session;
  const isEarlier = part.createdAt < session.createdAt;
  return {
    ...session,
    title: (isEarlier ? projectApiRun(part.first).title : undefined) ?? session.title,
    runCount: session.runCount + part.runs,
    createdAt: isEarlier ? part.createdAt : session.createdAt,
    updatedAt: part.updatedAt > session.updatedAt ? part.updatedAt : session.updatedAt,
  };
}

function runsBySession(deps: Pick<ScopeDeps, 'caches' | 'archive'>, agent: ApiAgent): Map<string, ApiRun[]> {
  const sessions = new Map<string, ApiRun[]>();
  for (const run of deps.caches.AgentRun.byIndex(BY_AGENT, agentKey(agent.namespace, agent.name))) {
    if (!isShown(deps, agent, run)) continue;
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
  /** Whether `text` was cut. */
  truncated: boolean;
  at: string;
}

export interface MessageQuery extends PageQuery {
  sessionId: string;
}

const SESSION_NOT_FOUND =
  'session not found: this agent has no session with this sessionId; list_sessions shows the latest';

/**
 * The result of get_session. One GET and the chunks of the transcript for each run of the page; runs before it cost nothing
 * once they have ended.
 */
export async function getSession(deps: ScopeDeps, caller: Caller, id: string, query: MessageQuery) {
  const agent = await findAgent(deps, caller, id);
  const { runs, archived, incomplete } = await allRuns(deps, agent, query.sessionId);
  if (runs.length === 0) throw new UserError(incomplete ? SESSION_AWAY : SESSION_NOT_FOUND);
  const warned = new Map<string, readonly string[]>();
  const read = async (run: ApiRun) => {
    const found = await runOf(deps, agent, run, archived.has(run.uid));
    if (found === undefined) return [];
    warned.set(run.name, found.status?.warnings ?? []);
    return (await messagesOf(deps, agent, found)).reverse();
  };
  const { messages, more } = await readPage(runs.toReversed(), query, read);
  const shown = [...new Set(messages.map(({ runId }) => runId))];
  const warnings = shown.flatMap((runId) => (warned.get(runId) ?? []).map((text) => ({ runId, text })));
  return {
    ...record(query.sessionId, runs),
    messages,
    files: filesOf(deps, agent, runs),
    ...(warnings.length === 0 ? {} : { warnings }),
    nextOffset: more ? query.offset + query.limit : null,
    ...(incomplete ? { note: ARCHIVE_AWAY_NOTE } : {}),
  };
}

/** Most files that a session shows, the newest. */
const MAX_SESSION_FILES = 100;

/** What the runs of the session published, oldest first. */
function filesOf({ fileLinks }: Pick<ScopeDeps, 'fileLinks'>, { box }: ApiAgent, runs: readonly ApiRun[]) {
  return runs
    .flatMap(({ name, files }) => fileLinks.of({ box, run: name }, files).map((file) => ({ runId: name, ...file })))
    .slice(-MAX_SESSION_FILES);
}

/** The runs of a session in the cluster and in the archive, oldest first. */
async function allRuns(deps: ScopeDeps, agent: ApiAgent, sessionId: string): Promise<MergedRuns> {
  const live = await sessionRuns(deps, agent, sessionId);
  const merged = await withArchived(deps, agent, live, (archive, scope, signal) =>
    archive.session(scope, sessionId, signal),
  );
  return { ...merged, runs: merged.runs.sort(byAcceptance) };
}

/** The whole run; undefined when it was removed meanwhile. */
async function runOf(
  deps: ScopeDeps,
  agent: ApiAgent,
  { namespace, name, uid }: ApiRun,
  isArchived: boolean,
): Promise<AgentRun | undefined> {
  const live = isArchived
    ? undefined
    : await kubeCall(deps, (signal) => orUndefined(deps.api.get(AgentRuns, { namespace, name }, { signal })));
  return live?.metadata.uid === uid ? live : await findArchived(deps, agent, { uid });
}

/** The messages of one run, oldest first. */
async function messagesOf(deps: ScopeDeps, agent: ApiAgent, run: AgentRun): Promise<SessionMessage[]> {
  const { events } =
    run.status?.transcript?.state === 'archived'
      ? await readArchivedTranscript(deps, agent, run)
      : await kubeCall(deps, (signal) => readTranscript(readsWithin(deps, signal), run));
  return runMessages(run, events);
}

/**
 * What was said in a run: the input, then every text of the agent. What the transcript does not hold (a run that has not
 * begun, was cut or has expired) is filled in from the run itself.
 */
export function runMessages(run: AgentRun, events: readonly RunEvent[]): SessionMessage[] {
  const { name } = run.metadata;
  const { createdAt } = projectApiRun(run);
  const said = events.flatMap((event) => (event.type === 'message' ? [event] : []));
  const heard = said.find(({ message }) => message.role === 'user' && message.text !== '');
  const input = heard?.message.role === 'user' ? heard.message.text : inputOf(run);
  const answers = events.flatMap((event) => {
    const answer = agentText(event);
    return answer === undefined ? [] : [{ text: answer.text, at: isoTime(answer.at) }];
  });
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

/** Never cuts a surrogate pair in two. */
function cutCharacters(text: string): string {
  if (text.length <= MAX_SESSION_TEXT) return text;
  const cut = text.slice(0, MAX_SESSION_TEXT);
  return cut.isWellFormed() ? cut : cut.slice(0, -1);
}
