/**
 * The archive: finished runs with their transcripts, kept after the AgentRun is gone from the cluster. Consumers
 * see these interfaces; PostgreSQL stands behind them (postgres-archive.ts).
 * See docs/architecture.md#archive.
 */
import type { AgentRunChunk } from '../api/v1alpha1/agent-run-chunk.js';
import type { AgentRun } from '../api/v1alpha1/agent-run.js';

/** One piece of a transcript, as AgentRunChunks hold it. */
export type ArchivedChunk = Pick<AgentRunChunk['spec'], 'run' | 'runUid' | 'seq' | 'bytes' | 'sha256' | 'data'>;

/** A finished run on its way into the archive. */
export interface ArchiveEntry {
  workspace: string;
  box: string;
  agentUid: string;
  /** As the API server has it now. */
  run: AgentRun;
  /** Title of the session if this run opened it. */
  sessionTitle: string | undefined;
  chunks: readonly ArchivedChunk[];
}

/** `purged`: the agent was deleted, and nothing of it is kept any more. */
export type PutResult = 'stored' | 'purged';

export interface ArchiveWriter {
  /**
   * Resolves when run and transcript are stored for good. Repeating it is a success; an older version of the run never
   * replaces a newer one, and a text or chunk that was stored is never lost. Rejects with {@link ArchiveUnavailableError}.
   */
  put(entry: ArchiveEntry, signal: AbortSignal): Promise<PutResult>;
  /** Removes all runs of an agent, and refuses later ones. Rejects with {@link ArchiveUnavailableError}. */
  purge(agentUid: string, signal: AbortSignal): Promise<void>;
  /** Milliseconds for which calls fail at once, because the last one failed; 0 = try. */
  retryInMs(): number;
}

/** Whose runs are read: every read is limited by all three. */
export interface ArchiveScope {
  workspace: string;
  box: string;
  agentUid: string;
}

/** What the archive holds of a session. */
export interface ArchivedSession {
  sessionId: string;
  /** Runs, at least one. */
  runs: number;
  /** ISO 8601: acceptance of the first one, and the latest acceptance or end. */
  createdAt: string;
  updatedAt: string;
  /** Head of the first one. */
  first: AgentRun;
  /** Head of the latest one that a pod took: the conversation goes on from there. */
  last: AgentRun | undefined;
}

export interface SessionsQuery {
  /** Sessions to leave out. */
  except: readonly string[];
  /** Only those that wait for an answer. */
  waiting: boolean;
  limit: number;
}

/** Archived runs carry no resourceVersion, finalizers or conditions; heads also lack message, input and output. */
export interface ArchiveReader {
  /** Heads of the latest runs, in the order of list_runs: newest first, then by name backwards. */
  list(scope: ArchiveScope, limit: number, signal: AbortSignal): Promise<AgentRun[]>;
  /** Heads of the latest runs of a session, at most `limit` or {@link MAX_SESSION_RUNS}, oldest first. */
  session(scope: ArchiveScope, sessionId: string, signal: AbortSignal, limit?: number): Promise<AgentRun[]>;
  /** Sessions by the end of their latest run, latest first. */
  sessions(scope: ArchiveScope, query: SessionsQuery, signal: AbortSignal): Promise<ArchivedSession[]>;
  /** What the archive holds of these sessions, without the runs `exceptUids`; nothing for a session that it does not know. */
  partsOf(
    scope: ArchiveScope,
    query: { sessionIds: readonly string[]; exceptUids: readonly string[] },
    signal: AbortSignal,
  ): Promise<ArchivedSession[]>;
  /** A whole run by its name (the latest of that name) or its UID. */
  find(scope: ArchiveScope, by: { name: string } | { uid: string }, signal: AbortSignal): Promise<AgentRun | undefined>;
  /** The transcript of a run, in order. */
  chunks(scope: ArchiveScope, uid: string, signal: AbortSignal): Promise<ArchivedChunk[]>;
}

/** Most runs of one session that are read. */
export const MAX_SESSION_RUNS = 5_000;

/** The archive could not be read or written. The message names the cause without addresses, values or secrets. */
export class ArchiveUnavailableError extends Error {
  override readonly name = 'ArchiveUnavailableError';
  constructor(readonly code: string) {
    super(`the archive cannot be used: ${code}`);
  }
}
