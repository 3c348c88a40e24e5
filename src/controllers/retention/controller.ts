/**
 * Retention: looks at all finished runs from time to time, and sooner when many have ended. Caches only. It plans (plan.ts)
 * and begins their removal (remove-run.ts); src/controllers/agent-run/settlement/settle.ts ends it and tells the whole sequence.
 * See docs/architecture.md#removing-a-run.
 */
import { isTerminal } from '../../run/status.js';
import { isBadRequest, isForbidden, isInvalid } from '../../kube/errors.js';
import type { FileStore } from '../../files/file-store.js';
import type { Cache, KubeApi } from '../../kube/types.js';
import type { Logger } from '../../observability/logger.js';
import type { Clock } from '../../runtime/clock.js';
import type { ReconcileResult } from '../../runtime/controller.js';
import { inParallel } from '../../runtime/in-parallel.js';
import { objectKey } from '../../api/meta.js';
import type { ControllerPart } from '../common/controller-part.js';
import type { RetentionMetrics } from './metrics.js';
import { planRetention } from './plan.js';
import type { RetentionAction, RetentionLimits } from './plan.js';
import { Remover } from './remove-run.js';
import type { TranscriptArchive } from './remove-run.js';
import { finishedRuns, fixedBytesOf, storedBytesOf } from './stored.js';
import type { ControllerRun } from '../../projections/agent-run.js';
import type { ControllerJob } from '../../projections/job.js';

export interface RetentionDependencies {
  api: Pick<KubeApi, 'get' | 'patch' | 'delete'>;
  clock: Clock;
  log: Logger;
  caches: { runs: Cache<ControllerRun>; jobs: Pick<Cache<ControllerJob>, 'get'> };
  limits: RetentionLimits;
  metrics: RetentionMetrics;
  files: Pick<FileStore, 'remove'>;
  /** Absent when the installation has none. */
  archive?: TranscriptArchive | undefined;
}

/** Often enough for the rules of age. */
const PASS_MS = 60_000;
/** A pass over 60,000 runs takes some 100 ms: however many runs end, passes are this far apart. */
const GAP_MS = 2_000;
/** The most actions of one pass; while more are due, the next pass follows after the pause. */
export const ACTIONS_AT_ONCE = 500;
const PAUSE_MS = 500;
const PARALLEL = 16;
/** How much has to end since the last pass for the next one to come at once. */
const RUNS_UNTIL_PASS = 500;
const BYTES_UNTIL_PASS = 1024 * 1024;
/** The cache shows a removal within moments; until then it is not requested again, and neither is one that was refused. */
const ASKED_MS = 30_000;

const WHOLE_INSTALLATION = 'installation';

export function createRetentionController(deps: RetentionDependencies): ControllerPart {
  const retention = new Retention(deps);
  return {
    name: 'retention',
    workers: 1,
    watch: (enqueue) => retention.watch(() => enqueue(WHOLE_INSTALLATION)),
    reconcile: (_key, signal) => retention.pass(signal),
  };
}

class Retention {
  readonly #remover: Remover;
  /** Key of a run -> its version when it was acted on, and until when that is remembered. */
  readonly #asked = new Map<string, { version: string | undefined; until: number }>();
  /** Of this pass. */
  #refusals: unknown[] = [];
  #runsSince = 0;
  #bytesSince = 0;
  /** On the monotonic clock. */
  #notBefore = 0;

  constructor(private readonly deps: RetentionDependencies) {
    const { api, log, files, archive } = deps;
    this.#remover = new Remover({ api, jobs: deps.caches.jobs, log, files, archive });
  }

  watch(poke: () => void): () => void {
    poke();
    return this.deps.caches.runs.onChange(({ previous, current }) => {
      if (current === undefined || !isTerminal(current)) return;
      const isNew = previous === undefined || !isTerminal(previous);
      const before = isNew ? 0 : bytesOf(previous);
      if (isNew) this.#runsSince += 1;
      this.#bytesSince += Math.max(0, bytesOf(current) - before);
      if (this.#runsSince >= RUNS_UNTIL_PASS || this.#bytesSince >= BYTES_UNTIL_PASS) poke();
    });
  }

  async pass(signal: AbortSignal): Promise<ReconcileResult> {
    const wait = this.#notBefore - this.deps.clock.monotonic();
    if (wait > 0) return { requeueAfterMs: wait };
    this.#runsSince = 0;
    this.#bytesSince = 0;
    this.#forgetOld();
    const { clock, caches, limits, metrics, log } = this.deps;
    const runs = [...caches.runs.values()].filter((run) => !this.#isAsked(run));
    const finished = finishedRuns(runs, clock.now());
    const { actions, held, storedBytes } = planRetention(finished, limits, clock.now());
    metrics.levels({ finishedRuns: finished.length, heldRuns: held, storedBytes, due: actions.length });
    if (held > 0) log.warn({ held, maxFinished: limits.maxFinished }, 'too many runs ended within the last hour');
    this.#refusals = [];
    await this.#act(actions.slice(0, ACTIONS_AT_ONCE), signal);
    const [err] = this.#refusals;
    if (err !== undefined) log.warn({ err, runs: this.#refusals.length }, 'the removal of finished runs was refused');
    const more = actions.length > ACTIONS_AT_ONCE;
    this.#notBefore = clock.monotonic() + (more ? PAUSE_MS : GAP_MS);
    return { requeueAfterMs: more ? PAUSE_MS : PASS_MS };
  }

  /** All of them, even if one fails: the next pass repeats what failed. */
  async #act(actions: RetentionAction[], signal: AbortSignal): Promise<void> {
    const work = async (action: RetentionAction) => {
      if (!signal.aborted) await this.#actOn(action, signal);
    };
    await inParallel(actions, work, PARALLEL);
  }

  async #actOn(action: RetentionAction, signal: AbortSignal): Promise<void> {
    const run = this.deps.caches.runs.get(action.key);
    if (run === undefined || !isTerminal(run) || run.metadata.deletionTimestamp !== undefined) return;
    try {
      if (action.do === 'remove') await this.#remover.remove(run, signal);
      else await this.#remover.expire(run, signal);
      this.deps.metrics.acted(action.do, action.rule);
    } catch (error) {
      // Others come first until it is tried again: the oldest runs may all be of somebody who refuses their removal.
      if (!isForbidden(error) && !isInvalid(error) && !isBadRequest(error)) throw error;
      this.#refusals.push(error);
    }
    const until = this.deps.clock.monotonic() + ASKED_MS;
    this.#asked.set(action.key, { version: run.metadata.resourceVersion, until });
  }

  /** Whether the cache still shows the run as it was before it was acted on. */
  #isAsked(run: ControllerRun): boolean {
    const asked = this.#asked.get(objectKey(run.metadata));
    return asked !== undefined && asked.version === run.metadata.resourceVersion;
  }

  #forgetOld(): void {
    const now = this.deps.clock.monotonic();
    for (const [key, { until }] of this.#asked) if (until <= now) this.#asked.delete(key);
  }
}

function bytesOf(run: ControllerRun): number {
  return storedBytesOf(run) + fixedBytesOf(run);
}
