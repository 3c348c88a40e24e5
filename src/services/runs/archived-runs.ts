/**
 * Reading through to the archive: finished runs stay visible when they are gone from the cluster. The caches are
 * always read before the archive: a run leaves the cluster only after the archive has it, so none is missed in
 * between, and one that is in both is recognized by its UID. Without an archive nothing here costs anything.
 */
import type { AgentRun } from '../../api/v1alpha1/agent-run.js';
import { ArchiveUnavailableError } from '../../archive/types.js';
import type { ArchiveReader, ArchiveScope } from '../../archive/types.js';
import { collect } from '../../transcript/chunk-store.js';
import type { Transcript } from '../../transcript/chunk-store.js';
import type { ScopeDeps } from '../scope.js';
import { UserError } from '../../api/user-error.js';
import { projectArchivedRun } from '../../projections/agent-run.js';
import type { ApiRun } from '../../projections/agent-run.js';
import type { ApiAgent } from '../../projections/agent.js';
import { kubeCall } from '../kube-call.js';

export type ArchiveDeps = Pick<ScopeDeps, 'archive' | 'caches' | 'clock'>;

/** In a list that may be incomplete. */
export const ARCHIVE_AWAY_NOTE =
  'The archive of older runs cannot be reached at the moment: runs that are no longer in the cluster are missing here.';

const ARCHIVE_AWAY =
  'there is no such run in the cluster, and the archive of older runs cannot be reached at the moment: try again later';

export const SESSION_AWAY =
  'this session is not in the cluster, and the archive of older runs cannot be reached at the moment: try again later';

export interface MergedRuns {
  /** Every run once; the live form of one that is in both. In no order. */
  runs: ApiRun[];
  /** UIDs of those that are in the archive only. */
  archived: ReadonlySet<string>;
  /** The archive could not be read. */
  incomplete: boolean;
}

/** Adds archived runs to those of the caches, which must have been read before. */
export async function withArchived(
  deps: ArchiveDeps,
  agent: ApiAgent,
  live: readonly ApiRun[],
  read: (archive: ArchiveReader, scope: ArchiveScope, signal: AbortSignal) => Promise<readonly AgentRun[]>,
): Promise<MergedRuns> {
  const { found, incomplete } = await readArchive(deps, agent, read);
  const known = new Set(live.map(({ uid }) => uid));
  const gone = found.map(projectArchivedRun).filter(({ uid }) => !known.has(uid));
  return { runs: [...live, ...gone], archived: new Set(gone.map(({ uid }) => uid)), incomplete };
}

/** What the archive holds; `incomplete` when it could not be read. */
export interface FromArchive<T> {
  found: readonly T[];
  incomplete: boolean;
}

/** Nothing without an archive, and when it cannot be read. */
export async function readArchive<T>(
  deps: ArchiveDeps,
  agent: ApiAgent,
  read: (archive: ArchiveReader, scope: ArchiveScope, signal: AbortSignal) => Promise<readonly T[]>,
): Promise<FromArchive<T>> {
  const { archive } = deps;
  if (archive === undefined) return { found: [], incomplete: false };
  try {
    const found = await kubeCall(deps, (signal) => read(archive, scopeOf(deps, agent), signal));
    return { found, incomplete: false };
  } catch (error) {
    if (!(error instanceof ArchiveUnavailableError)) throw error;
    return { found: [], incomplete: true };
  }
}

/** Whether the archive has a run of the session. Throws a {@link UserError} when it cannot be read. */
export async function isSessionArchived(deps: ArchiveDeps, agent: ApiAgent, sessionId: string): Promise<boolean> {
  const { archive } = deps;
  if (archive === undefined) return false;
  const read = kubeCall(deps, (signal) => archive.session(scopeOf(deps, agent), sessionId, signal, 1));
  return (await orAway(read, SESSION_AWAY)).length > 0;
}

/** A whole run from the archive. Throws a {@link UserError} when the archive cannot be read. */
export async function findArchived(
  deps: ArchiveDeps,
  agent: ApiAgent,
  by: { name: string } | { uid: string },
): Promise<AgentRun | undefined> {
  const { archive } = deps;
  if (archive === undefined) return undefined;
  return await orAway(kubeCall(deps, (signal) => archive.find(scopeOf(deps, agent), by, signal)));
}

/** The transcript of a run whose transcript is in the archive. Throws like {@link findArchived}. */
export async function readArchivedTranscript(deps: ArchiveDeps, agent: ApiAgent, run: AgentRun): Promise<Transcript> {
  const { archive } = deps;
  if (archive === undefined) return { events: [], state: 'archived' };
  const uid = run.metadata.uid ?? '';
  const chunks = await orAway(kubeCall(deps, (signal) => archive.chunks(scopeOf(deps, agent), uid, signal)));
  return await collect(chunks, 'archived');
}

function scopeOf({ caches }: ArchiveDeps, agent: ApiAgent): ArchiveScope {
  return { workspace: caches.Box.get(agent.box)?.workspace ?? '', box: agent.box, agentUid: agent.uid };
}

async function orAway<T>(read: Promise<T>, message = ARCHIVE_AWAY): Promise<T> {
  try {
    return await read;
  } catch (error) {
    if (error instanceof ArchiveUnavailableError) throw new UserError(message);
    throw error;
  }
}
