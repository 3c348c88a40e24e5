/**
 * The runs of a session before a run, wherever they are: in the cluster, or in the archive after retention removed them.
 * An archive that cannot be reached never holds up a run: it then begins without the runs that are only there.
 */
import type { AgentRun } from '../../api/v1alpha1/agent-run.js';
import { ArchiveUnavailableError } from '../../archive/types.js';
import type { ArchiveReader, ArchiveScope } from '../../archive/types.js';
import type { KubeApi } from '../../kube/types.js';
import type { Clock } from '../../runtime/clock.js';
import { withTimeout } from '../../runtime/with-timeout.js';
import { collect, readTranscript } from '../../transcript/chunk-store.js';
import type { Transcript } from '../../transcript/chunk-store.js';
import { orMissing } from '../errors.js';
import { MAX_HISTORY_RUNS } from '../../run/session/history.js';
import type { RunStore } from './run-store.js';
import { DamagedInputError, messageOf } from '../../run/message.js';
import { opensSession, sessionIdOf } from '../../run/session/key.js';
import { previousRunOf } from '../../run/session/order.js';

/** One read of the archive; the runner waits for its claim meanwhile. */
const ARCHIVE_READ_MS = 5_000;

export interface EarlierRunsDeps {
  api: Pick<KubeApi, 'get'>;
  store: Pick<RunStore, 'fetch' | 'find' | 'ofSession'>;
  clock: Clock;
  /** Absent when the installation has none. */
  archive?: ArchiveReader | undefined;
}

export class EarlierRuns {
  #incomplete = false;

  private constructor(
    private readonly deps: EarlierRunsDeps,
    private readonly scope: ArchiveScope,
    /** Runs of the session that a pod took, without the run itself; the order is not that of their claims. */
    private readonly runs: readonly AgentRun[],
    /** The run whose conversation goes on; undefined when there is none, or when it cannot be read. */
    readonly previous: AgentRun | undefined,
  ) {}

  /**
   * `previousRun` is what the Job of the run names: the latest claimed run that the cluster had at the admission. Rejects when
   * the API server does.
   */
  static async of(
    deps: EarlierRunsDeps,
    run: AgentRun,
    { scope, previousRun }: { scope: ArchiveScope; previousRun: string | undefined },
  ): Promise<EarlierRuns> {
    const named = await findNamed(deps, run, previousRun);
    const inCluster = deps.store.ofSession(run);
    const archived = await readArchived({ deps, run, scope, inCluster });
    const known = [...inCluster, ...(named === undefined ? [] : [named])];
    const runs = uniqueClaimed(run, [...known, ...(archived ?? [])]);
    const earlier = new EarlierRuns(deps, scope, runs, named ?? previousRunOf(run, runs));
    earlier.#incomplete = archived === undefined;
    return earlier;
  }

  /** Whether something of the session could not be read so far. */
  get isIncomplete(): boolean {
    return this.#incomplete;
  }

  /** The other runs of the session that a pod took. */
  others(): readonly AgentRun[] {
    return this.runs.filter(({ metadata }) => metadata.uid !== this.previous?.metadata.uid);
  }

  /** What a run was told; undefined when it is damaged or gone. Rejects when the API server does. */
  async message(run: AgentRun): Promise<string | undefined> {
    const ref = { namespace: run.metadata.namespace ?? '', name: run.metadata.name };
    // Caches have no texts of runs that ended.
    const { spec } = run.spec.message !== undefined ? run : ((await orMissing(this.deps.store.fetch(ref))) ?? run);
    try {
      return await messageOf(spec);
    } catch (error) {
      if (error instanceof DamagedInputError) return undefined;
      throw error;
    }
  }

  /** Rejects when the API server does. */
  async transcript(run: AgentRun): Promise<Transcript> {
    const { api, archive } = this.deps;
    if (run.status?.transcript?.state !== 'archived' || archive === undefined) return await readTranscript(api, run);
    const chunks = await readArchive(this.deps, (signal) => archive.chunks(this.scope, run.metadata.uid ?? '', signal));
    this.#incomplete ||= chunks === undefined;
    return await collect(chunks ?? [], 'archived');
  }
}

async function findNamed(
  { store }: EarlierRunsDeps,
  run: AgentRun,
  name: string | undefined,
): Promise<AgentRun | undefined> {
  if (name === undefined) return undefined;
  return await orMissing(store.find({ namespace: run.metadata.namespace ?? '', name }));
}

interface ArchiveQuestion {
  deps: EarlierRunsDeps;
  run: AgentRun;
  scope: ArchiveScope;
  inCluster: readonly AgentRun[];
}

/**
 * Heads of the session in the archive; undefined when it cannot be read. Retention removes the oldest first, so while the run
 * that opened the session is in the cluster, nothing of it is only in the archive.
 */
async function readArchived({ deps, run, scope, inCluster }: ArchiveQuestion): Promise<AgentRun[] | undefined> {
  const { archive } = deps;
  if (archive === undefined || opensSession(run) || inCluster.some(opensSession)) return [];
  return await readArchive(deps, (signal) => archive.session(scope, sessionIdOf(run), signal, MAX_HISTORY_RUNS));
}

async function readArchive<T>(
  { clock }: EarlierRunsDeps,
  read: (signal: AbortSignal) => Promise<T>,
): Promise<T | undefined> {
  try {
    return await withTimeout(clock, ARCHIVE_READ_MS, read);
  } catch (error) {
    if (error instanceof ArchiveUnavailableError) return undefined;
    throw error;
  }
}

/** Each run once: what stands first is newer. */
function uniqueClaimed(run: AgentRun, runs: readonly AgentRun[]): AgentRun[] {
  const byUid = new Map<string, AgentRun>();
  for (const one of runs) {
    const uid = one.metadata.uid ?? one.metadata.name;
    if (one.metadata.name === run.metadata.name || one.status?.claim === undefined || byUid.has(uid)) continue;
    byUid.set(uid, one);
  }
  return [...byUid.values()];
}
