/**
 * Keeps every removed run in the cluster until the archive has it. It has workers of its own, so that a slow or
 * absent PostgreSQL delays deletions and nothing else. What is stored is remembered in memory only: after a restart a
 * run is stored once more, which changes nothing.
 */
import { objectKey } from '../../api/meta.js';
import { RunStatusWriter } from '../../run/status-writer.js';
import { keptText } from '../../run/outcome.js';
import { isSettled } from '../../run/status.js';
import { AgentRuns } from '../../api/v1alpha1/agent-run.js';
import type { ArchiveMetrics } from '../../archive/metrics.js';
import { ArchiveUnavailableError } from '../../archive/types.js';
import type { ArchiveWriter } from '../../archive/types.js';
import { isNotFound } from '../../kube/errors.js';
import type { Cache, KubeApi } from '../../kube/types.js';
import type { Logger } from '../../observability/logger.js';
import type { Clock } from '../../runtime/clock.js';
import { isoNow } from '../../runtime/clock.js';
import type { ReconcileResult } from '../../runtime/controller.js';
import type { ControllerPart } from '../common/controller-part.js';
import { refOf } from '../common/finalizer.js';
import type { ArchiveResult, RunArchiver } from './archiver.js';
import type { ArchiveGate } from './gate.js';
import type { ControllerRun } from '../../projections/agent-run.js';
import { isCounted } from '../../run/usage/totals.js';

export interface ArchiveDependencies {
  api: Pick<KubeApi, 'get' | 'patch'>;
  clock: Clock;
  runs: Cache<ControllerRun>;
  archiver: Pick<RunArchiver, 'archive'>;
  store: Pick<ArchiveWriter, 'retryInMs'>;
  metrics: Pick<ArchiveMetrics, 'waiting'>;
  log: Pick<Logger, 'warn'>;
}

/** As many runs are stored at once; each may hold up to 24 chunks in memory. */
const WORKERS = 4;
/** How long a run waits for the next try. */
const RETRY_MS = 10_000;

export interface ArchiveControllers {
  /** Stores runs that are being removed. */
  part: ControllerPart;
  /** The run controller asks it before it lets a run go. */
  gate: ArchiveGate;
  /** Stores a finished run at once: for whoever wants to delete its input or its chunks. Rejects as the archiver does. */
  storeNow(run: ControllerRun, signal: AbortSignal): Promise<ArchiveResult>;
}

export function createArchiveControllers(deps: ArchiveDependencies): ArchiveControllers {
  const progress = new Progress(deps.metrics);
  const writer = new RunStatusWriter(deps.api, 'archive controller', deps.log);
  const tell = teller(deps, writer, progress);
  return {
    gate: progress,
    async storeNow(run, signal) {
      const result = await deps.archiver.archive(run, signal);
      // Usage may still grow: then it is stored once more when the run goes.
      if (run.status?.usageFinal === true) progress.store(run);
      return result;
    },
    part: {
      name: 'run-archive',
      workers: WORKERS,
      watch: (enqueue) =>
        deps.runs.onChange(({ key, previous, current }) => {
          if (current === undefined) progress.forget(previous?.metadata.uid ?? '');
          else if (isLeaving(current) && !progress.isStored(current)) {
            progress.wait(current);
            enqueue(key);
          }
        }),
      reconcile: (key, signal) => reconcile({ ...deps, tell }, progress, key, signal),
    },
  };
}

/** Deleted, ended, not counted yet, and nobody will raise its usage any more. */
function isLeaving(run: ControllerRun): boolean {
  const deleted = run.metadata.deletionTimestamp !== undefined;
  return deleted && isSettled(run) && isCounted(run);
}

async function reconcile(
  deps: ArchiveDependencies & { tell: Tell },
  progress: Progress,
  key: string,
  signal: AbortSignal,
): Promise<ReconcileResult> {
  const run = deps.runs.get(key);
  if (run === undefined || !isLeaving(run) || progress.isStored(run)) return {};
  if (deps.store.retryInMs() > 0) {
    await deps.tell(run, signal);
    return { requeueAfterMs: RETRY_MS };
  }
  try {
    await deps.archiver.archive(run, signal);
  } catch (error) {
    if (!(error instanceof ArchiveUnavailableError)) throw error;
    await deps.tell(run, signal);
    return { requeueAfterMs: RETRY_MS };
  }
  progress.store(run);
  return {};
}

type Tell = (run: ControllerRun, signal: AbortSignal) => Promise<void>;

/** Says on a run why it is still there: one GET and one write a run, however long it takes. */
function teller({ api, clock }: ArchiveDependencies, writer: RunStatusWriter, progress: Progress): Tell {
  return async (run, signal) => {
    if (!progress.isUntold(run)) return;
    try {
      const live = await api.get(AgentRuns, refOf(run.metadata), { signal });
      if (live.metadata.uid !== run.metadata.uid) return;
      const event = { type: 'not-archived', message: keptText('ArchiveUnavailable'), now: isoNow(clock) } as const;
      await writer.apply(live, event, signal);
    } catch (error) {
      if (!isNotFound(error)) throw error;
    }
    progress.told(run);
  };
}

/** Which of the removed runs wait for the archive, and which may go; by UID. */
class Progress implements ArchiveGate {
  readonly #waiting = new Set<string>();
  readonly #told = new Set<string>();
  readonly #stored = new Set<string>();
  readonly #listeners = new Set<(key: string) => void>();

  constructor(private readonly metrics: Pick<ArchiveMetrics, 'waiting'>) {}

  isStored(run: ControllerRun): boolean {
    return this.#stored.has(uidOf(run));
  }

  onStored(listener: (key: string) => void): () => void {
    this.#listeners.add(listener);
    return () => this.#listeners.delete(listener);
  }

  wait(run: ControllerRun): void {
    this.#waiting.add(uidOf(run));
    this.metrics.waiting(this.#waiting.size);
  }

  isUntold(run: ControllerRun): boolean {
    return !this.#told.has(uidOf(run));
  }

  told(run: ControllerRun): void {
    this.#told.add(uidOf(run));
  }

  store(run: ControllerRun): void {
    this.forget(uidOf(run));
    this.#stored.add(uidOf(run));
    for (const listener of this.#listeners) listener(objectKey(run.metadata));
  }

  /** The run is gone. */
  forget(uid: string): void {
    this.#waiting.delete(uid);
    this.#told.delete(uid);
    this.#stored.delete(uid);
    this.metrics.waiting(this.#waiting.size);
  }
}

function uidOf(run: ControllerRun): string {
  return run.metadata.uid ?? '';
}
