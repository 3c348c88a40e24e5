/** The writes of the run controller. Each carries the version or the UID that the decision was made on. */
import { ANNOTATION_STARTED_UID, FINALIZER_ROLL_UP } from '../../api/labels.js';
import { AgentRuns } from '../../api/v1alpha1/agent-run.js';
import { agentUidOf } from '../../run/status.js';
import { RunStatusWriter } from '../../run/status-writer.js';
import type { StatusEvent } from '../../run/transition.js';
import type { FoundOutcome } from '../../run/outcome.js';
import type { QueueReason } from '../../run/reasons.js';
import { Jobs } from '../../kube/core-types.js';
import { isConflict, isNotFound, orUndefined } from '../../kube/errors.js';
import type { KubeApi } from '../../kube/types.js';
import type { Logger } from '../../observability/logger.js';
import { isoNow } from '../../runtime/clock.js';
import type { Clock } from '../../runtime/clock.js';
import { refOf } from '../common/finalizer.js';
import { TTL_SECONDS_AFTER_FINISHED } from './admission/job.js';
import type { ControllerRun } from '../../projections/agent-run.js';
import type { ControllerJob } from '../../projections/job.js';
import { isCounted } from '../../run/usage/totals.js';
import { OwnWrites } from './own-writes.js';

export class RunWriter {
  readonly #status: RunStatusWriter;
  /** Writes that the cache may not show yet. */
  readonly own = new OwnWrites();

  constructor(
    private readonly api: Pick<KubeApi, 'patch' | 'delete'>,
    private readonly clock: Clock,
    log: Pick<Logger, 'warn'>,
  ) {
    this.#status = new RunStatusWriter(api, 'run controller', log);
  }

  /** Stores the outcome; 409 when anybody wrote the run since it was seen, for example the finish itself. */
  async finish(run: ControllerRun, outcome: FoundOutcome, signal: AbortSignal): Promise<void> {
    await this.#happened(run, { type: 'finished', by: 'run controller', outcome, now: isoNow(this.clock) }, signal);
  }

  /** Says why the run waits; no write when it says so already. */
  async queue(run: ControllerRun, why: { reason: QueueReason; message: string }, signal: AbortSignal): Promise<void> {
    await this.#happened(run, { type: 'queued', ...why, now: isoNow(this.clock) }, signal);
  }

  /** The run waits no longer; its pod is starting. */
  async admitted(run: ControllerRun, signal: AbortSignal): Promise<void> {
    await this.#happened(run, { type: 'admitted', now: isoNow(this.clock) }, signal);
  }

  /** Since when the run is being cancelled. */
  async cancelling(run: ControllerRun, signal: AbortSignal): Promise<void> {
    await this.#happened(run, { type: 'cancelling', now: isoNow(this.clock) }, signal);
  }

  /** Another run takes it further. */
  async retried(run: ControllerRun, by: string, signal: AbortSignal): Promise<void> {
    await this.#happened(run, { type: 'retried', by }, signal);
  }

  /** Usage is what it is: nobody may raise it after this write. A call that nobody counted is charged in full. */
  async closeUsage(run: ControllerRun, signal: AbortSignal): Promise<void> {
    await this.#happened(run, { type: 'usage-closed' }, signal);
  }

  /**
   * Takes on a run that was made by hand: the finalizer, so that it will be counted, and the UID of its agent. Returns the
   * run as it is now.
   */
  async takeOn(run: ControllerRun, agentUid: string, signal: AbortSignal): Promise<ControllerRun> {
    const held = isCounted(run) ? run : await this.#hold(run, signal);
    if (agentUidOf(run) !== undefined) return held;
    return await this.#happened(held, { type: 'agent-found', agentUid }, signal);
  }

  /** The session that the run goes on with, and the agent that does it. */
  async foundSession(run: ControllerRun, agentUid: string, sessionId: string, signal: AbortSignal): Promise<void> {
    await this.#happened(run, { type: 'agent-found', agentUid, sessionId }, signal);
  }

  async #hold(run: ControllerRun, signal: AbortSignal): Promise<ControllerRun> {
    const { resourceVersion, uid, finalizers = [] } = run.metadata;
    const annotations = { [ANNOTATION_STARTED_UID]: uid };
    const body = { metadata: { resourceVersion, annotations, finalizers: [...finalizers, FINALIZER_ROLL_UP] } };
    const held = await this.api.patch(AgentRuns, refOf(run.metadata), body, { type: 'merge', signal });
    this.own.noted(run.metadata, held.metadata);
    return { ...run, metadata: held.metadata };
  }

  /** The run is counted: lets it go. A run that is gone is a success. */
  async release(run: ControllerRun, signal: AbortSignal): Promise<void> {
    const { resourceVersion, finalizers = [] } = run.metadata;
    const body = { metadata: { resourceVersion, finalizers: finalizers.filter((name) => name !== FINALIZER_ROLL_UP) } };
    try {
      const released = await this.api.patch(AgentRuns, refOf(run.metadata), body, { type: 'merge', signal });
      this.own.noted(run.metadata, released.metadata);
    } catch (error) {
      if (!isNotFound(error)) throw error;
    }
  }

  /** Lets Kubernetes remove the finished Job and its pod after a while. */
  async setTtl(job: ControllerJob, signal: AbortSignal): Promise<void> {
    const body = { metadata: { uid: job.uid }, spec: { ttlSecondsAfterFinished: TTL_SECONDS_AFTER_FINISHED } };
    await ignoreGone(
      this.api.patch(Jobs, { namespace: job.namespace, name: job.name }, body, { type: 'merge', signal }),
    );
  }

  /** Ends the Job and its pod. */
  async deleteJob(job: ControllerJob, signal: AbortSignal): Promise<void> {
    const options = { uid: job.uid, propagationPolicy: 'Background', signal } as const;
    await ignoreGone(this.api.delete(Jobs, { namespace: job.namespace, name: job.name }, options));
  }

  /** The run after the write; as it was when nothing is written, also because it is gone and the cache does not know yet. */
  async #happened(run: ControllerRun, event: StatusEvent, signal: AbortSignal): Promise<ControllerRun> {
    const written = await orUndefined(this.#status.apply(run, event, signal));
    if (written?.status === undefined) return run;
    this.own.noted(run.metadata, written.metadata);
    return { ...run, metadata: written.metadata, status: written.status };
  }
}

/** Gone, or another object by now: nothing is left to do. */
async function ignoreGone(write: Promise<unknown>): Promise<void> {
  try {
    await write;
  } catch (error) {
    if (!isNotFound(error) && !isConflict(error)) throw error;
  }
}
