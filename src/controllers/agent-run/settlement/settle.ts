/**
 * What is left to do after the end of a run: its Job goes, its usage is closed, and a deleted run is counted and released.
 *
 * Who removes a finished run: retention (src/controllers/retention) plans it, stores it in the archive, deletes chunks, Job
 * and then the run, which its finalizer still holds; a person may begin with deleting the run. From there on it is settled
 * here, each step after the one before: the Job goes, usage is closed, the archive has the run, its schedule has noted the
 * tick, roll-up counts it, and the finalizer is released.
 * See docs/architecture.md#removing-a-run.
 */
import { isReportedReason } from '../../../run/reasons.js';
import { isClaimed } from '../../../run/status.js';
import type { ReconcileResult } from '../../../runtime/controller.js';
import type { RunDependencies } from '../dependencies.js';
import type { RunState } from '../run-state.js';
import type { RunWriter } from '../run-writer.js';
import type { ControllerRun } from '../../../projections/agent-run.js';
import { isCounted } from '../../../run/usage/totals.js';

/** How long to wait for the last word of the gateway on usage. */
export const USAGE_WAIT_MS = 120_000;
/** How often a deleted run of a tick asks whether its schedule has noted it. */
const TICK_RECHECK_MS = 1_000;
/** A runner that stopped itself, cancelled or at its deadline, needs a moment to exit; one that did not gets no more. */
const STOPPED_GRACE_SECONDS = 5;

export class Settler {
  /** Key of a run -> UID of its Job that got its TTL by a write which the cache does not show yet. */
  readonly #ttlWritten = new Map<string, string>();

  constructor(
    private readonly deps: Pick<RunDependencies, 'clock' | 'rollUp' | 'archive' | 'tickGate'>,
    private readonly writer: RunWriter,
  ) {}

  async settle(state: RunState, signal: AbortSignal): Promise<ReconcileResult> {
    const { run } = state;
    const deleting = run.metadata.deletionTimestamp !== undefined;
    const jobLeft = await this.#settleJob(state, deleting, signal);
    if (!isCounted(run)) return jobLeft;
    if (run.status?.usageFinal !== true) return sooner(jobLeft, await this.#settleUsage(run, signal));
    return deleting ? await this.#rollUp(run, signal) : jobLeft;
  }

  /** The run is gone. */
  forget(key: string): void {
    this.#ttlWritten.delete(key);
  }

  /**
   * The gateway may have been lost together with the run, say with their node. Until its usage is closed, a run holds all that
   * its budgets granted it.
   */
  async #settleUsage(run: ControllerRun, signal: AbortSignal): Promise<ReconcileResult> {
    const left = Date.parse(run.status?.finishedAt ?? '') + USAGE_WAIT_MS - this.deps.clock.now();
    if (left > 0) return { requeueAfterMs: left };
    // The write moves the version, so a late write of the gateway conflicts and sees that usage is closed.
    await this.writer.closeUsage(run, signal);
    return {};
  }

  /** Sets the TTL once, after the outcome; a Job that should have ended by now is deleted. */
  async #settleJob({ job, run, box, key }: RunState, deleting: boolean, signal: AbortSignal): Promise<ReconcileResult> {
    if (job === undefined || job.hasTtl || deleting) this.forget(key);
    if (job === undefined || job.deleting) return {};
    const seconds = graceSeconds(run, box?.spec.bounds.terminationSeconds ?? 0);
    const left = Date.parse(run.status?.finishedAt ?? '') + seconds * 1000 - this.deps.clock.now();
    if (deleting || (job.ended === undefined && !(left > 0))) {
      await this.writer.deleteJob(job, signal);
      return {};
    }
    if (!job.hasTtl && this.#ttlWritten.get(key) !== job.uid) {
      await this.writer.setTtl(job, signal);
      this.#ttlWritten.set(key, job.uid);
    }
    return job.ended === undefined ? { requeueAfterMs: left } : {};
  }

  async #rollUp(run: ControllerRun, signal: AbortSignal): Promise<ReconcileResult> {
    // The archive wakes the run when it has it.
    if (this.deps.archive?.isStored(run) === false) return {};
    // No event of a run tells when the schedule has noted its tick.
    const noted = this.deps.tickGate?.(run) ?? 0;
    if (noted > 0) return { requeueAfterMs: Math.min(noted, TICK_RECHECK_MS) };
    await this.deps.rollUp(run, signal);
    await this.writer.release(run, signal);
    return {};
  }
}

function sooner(a: ReconcileResult, b: ReconcileResult): ReconcileResult {
  const requeueAfterMs = Math.min(a.requeueAfterMs ?? Infinity, b.requeueAfterMs ?? Infinity);
  return requeueAfterMs === Infinity ? {} : { requeueAfterMs };
}

/** How long the pod of an ended run may go on. */
function graceSeconds(run: ControllerRun, terminationSeconds: number): number {
  const reason = run.status?.reason ?? '';
  // The runner reported the end: its pod ends by itself. With any other outcome the pod has to be ended.
  if (!isReportedReason(reason)) return 0;
  // These two are written by the controller as well, for a runner that did not stop.
  const maybeReported = reason === 'Cancelled' || reason === 'DeadlineExceeded';
  if (maybeReported) return isClaimed(run) ? STOPPED_GRACE_SECONDS : 0;
  return terminationSeconds;
}
