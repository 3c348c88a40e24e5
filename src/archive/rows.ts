/**
 * A run as the archive stores it: the head (what lists need) and the texts, both as JSON. JSON and not columns or jsonb,
 * because texts of users may contain characters that PostgreSQL refuses (U+0000, half surrogates): JSON escapes them.
 */
import type { AgentRun } from '../api/v1alpha1/agent-run.js';
import { acceptedAt } from '../api/names.js';
import { isoTime } from '../api/time.js';
import { hasInput, messageCount } from '../transcript/said.js';
import type { ArchiveEntry } from './types.js';
import { sessionIdOf } from '../run/session/key.js';

export interface RunRow {
  uid: string;
  workspace: string;
  box: string;
  agent: string;
  agentUid: string;
  name: string;
  sessionId: string;
  /** ISO 8601 with milliseconds, like the order of live runs. */
  createdAt: string;
  finishedAt: string | null;
  phase: string;
  resourceVersion: string;
  head: string;
  texts: string;
  /** False when retention had removed the input before. */
  hasInput: boolean;
  /** Whether a pod took the run: only then it is part of the conversation. */
  claimed: boolean;
  /** Whether it ended with a question or an approval. */
  waits: boolean;
}

interface Texts {
  message?: string | undefined;
  input?: AgentRun['spec']['input'];
  output?: string | undefined;
}

/** Throws when the run was not read from the API server. */
export function toRow({ run, workspace, box, agentUid, sessionTitle }: ArchiveEntry): RunRow {
  const { uid, name, resourceVersion } = run.metadata;
  if (uid === undefined || resourceVersion === undefined) throw new Error('the run was not read from the API server');
  const { message, input } = run.spec;
  const texts: Texts = { message, input, output: run.status?.output };
  return {
    uid,
    workspace,
    box,
    agent: run.spec.agent,
    agentUid,
    name,
    sessionId: sessionIdOf(run),
    createdAt: isoTime(acceptedAt(run)),
    finishedAt: run.status?.finishedAt === undefined ? null : isoTime(run.status.finishedAt),
    phase: run.status?.phase ?? 'running',
    resourceVersion,
    head: JSON.stringify(headOf(run, sessionTitle)),
    texts: JSON.stringify(texts),
    hasInput: hasInput(run),
    claimed: run.status?.claim !== undefined,
    waits: run.status?.pending !== undefined,
  };
}

/**
 * What belongs to the cluster alone (version, finalizers, conditions, files) is left behind. Claim, marks and question stay: the
 * session may be continued.
 */
function headOf(run: AgentRun, sessionTitle: string | undefined): AgentRun {
  const { name, namespace, uid, creationTimestamp } = run.metadata;
  const { message: _message, input: _input, ...spec } = run.spec;
  const {
    output: _output,
    conditions: _conditions,
    files: _files,
    fileCount: _count,
    ...status
  } = run.status ?? {
    phase: 'running' as const,
  };
  const transcript = status.transcript ?? { state: 'full' as const, chunks: 0, bytes: 0 };
  const { messages: _written, ...stored } = transcript;
  const state = transcript.state === 'expired' ? transcript.state : 'archived';
  const messages = countOf(run);
  return {
    apiVersion: run.apiVersion,
    kind: run.kind,
    metadata: {
      name,
      ...(namespace === undefined ? {} : { namespace }),
      ...(uid === undefined ? {} : { uid }),
      ...(creationTimestamp === undefined ? {} : { creationTimestamp }),
    },
    spec: { ...spec, ...(sessionTitle === undefined ? {} : { sessionTitle }) },
    status: { ...status, transcript: { ...stored, state, ...(messages === undefined ? {} : { messages }) } },
  };
}

/**
 * Messages of the archived run. Readers of a head see no texts, so that the count is made here; undefined when only the texts
 * can tell: an input that retention removed may be there from an earlier write.
 */
function countOf(run: AgentRun): number | undefined {
  return hasInput(run) || run.status?.transcript?.state === 'archived' ? messageCount(run) : undefined;
}

/** A head as it was stored. */
export function parseHead(head: string): AgentRun {
  return JSON.parse(head) as AgentRun;
}

/** The whole run. */
export function parseRun(head: string, texts: string): AgentRun {
  const run = parseHead(head);
  const { message, input, output } = JSON.parse(texts) as Texts;
  const spec = {
    ...run.spec,
    ...(message === undefined ? {} : { message }),
    ...(input === undefined ? {} : { input }),
  };
  if (run.status === undefined || output === undefined) return { ...run, spec };
  return { ...run, spec, status: { ...run.status, output } };
}
