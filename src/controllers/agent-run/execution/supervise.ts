/**
 * Execution: what happens to a run that has a Job, or had one. It goes on, returns to the queue because nothing was executed,
 * or ends. observe.ts decides; this file reads what the decision needs and carries it out.
 */
import { findCondition } from '../../../api/conditions.js';
import { BoxSpec } from '../../../api/v1alpha1/box.js';
import { Jobs, Nodes, Pods } from '../../../kube/core-types.js';
import { orUndefined } from '../../../kube/errors.js';
import { returnText, sentence } from '../../../run/outcome.js';
import type { FoundOutcome } from '../../../run/outcome.js';
import { isClaimed } from '../../../run/status.js';
import type { ReconcileResult } from '../../../runtime/controller.js';
import type { RunQueue } from '../admission/run-queue.js';
import { showWaiting } from '../admission/show-waiting.js';
import type { RunDependencies } from '../dependencies.js';
import { CACHE_LAG_MS, liveUid } from '../live-uid.js';
import { Marks } from '../marks.js';
import type { RunState } from '../run-state.js';
import type { RunWriter } from '../run-writer.js';
import { DisruptedPods } from './disrupted-pods.js';
import { hasStopped, isPodEnded, observe } from './observe.js';
import type { Decision, MissingKind } from './observe.js';
import { PodRefusals } from './pod-refusals.js';
import { showProgress } from './show-progress.js';
import { latestWarning, missingPullSecrets } from '../../common/warnings.js';

/** A run whose Box is gone has the default deadlines. */
const WITHOUT_BOX = { spec: BoxSpec.parse({ workspace: 'unknown' }) };

type Finish = Extract<Decision, { do: 'finish' }>;

export class Supervisor {
  readonly #marks: Marks;
  readonly #refusals: PodRefusals;
  readonly #disrupted = new DisruptedPods();

  constructor(
    private readonly deps: RunDependencies,
    private readonly queue: RunQueue,
    private readonly writer: RunWriter,
  ) {
    this.#marks = new Marks(deps.clock);
    this.#refusals = new PodRefusals(deps.api);
  }

  /** Remembers what a later look can no longer see; returns unsubscribe. */
  watch(): () => void {
    return this.deps.caches.pods.onChange((change) => this.#disrupted.noted(change));
  }

  async supervise(state: RunState, signal: AbortSignal): Promise<ReconcileResult | void> {
    const cancellingMs = this.#cancellingMs(state);
    const decision = await this.#decide(state, cancellingMs, signal);
    switch (decision.do) {
      case 'wait': {
        const progress = { clock: this.deps.clock, writer: this.writer, cancellingMs };
        return { requeueAfterMs: Math.min(decision.ms, await showProgress(progress, state, signal)) };
      }
      case 'requeue':
        return await this.#returnToQueue(state, decision.message, signal);
      case 'finish':
        return await this.#finish(state, decision, signal);
    }
  }

  /** The run has ended or is gone. */
  forget(key: string): void {
    this.#disrupted.forget(key);
    this.#marks.forget(key);
    this.#refusals.forget(key);
  }

  async #decide(state: RunState, cancellingMs: number, signal: AbortSignal): Promise<Decision> {
    const { run, job, pod, node, volume, terminating } = state;
    const nodeGone = pod?.node !== undefined && node === undefined && !isPodEnded(pod);
    return observe({
      run,
      job,
      pod,
      disrupted: this.#disrupted.of(state.key, run.status?.claim?.podUid),
      node,
      terminating,
      box: state.box ?? WITHOUT_BOX,
      unboundClaim: volume?.use === 'claim' && !volume.bound ? volume.claimName : undefined,
      podRefusal: await this.#podRefusal(state, signal),
      elapsed: {
        cancelling: cancellingMs,
        ended: this.#marks.elapsed(state, 'ended', hasStopped(pod, run, job)),
        nodeGone: this.#marks.elapsed(state, 'node-gone', nodeGone),
      },
      now: this.deps.clock.now(),
    });
  }

  /** How long ago cancellation was requested, as the status says or as this process has seen. */
  #cancellingMs(state: RunState): number {
    const { run } = state;
    const seen = this.#marks.elapsed(state, 'cancelling', run.spec.cancelRequested === true);
    const noted = findCondition(run.status?.conditions, 'Cancelling');
    if (noted === undefined) return seen;
    return Math.max(seen, this.deps.clock.now() - Date.parse(noted.lastTransitionTime));
  }

  async #podRefusal({ run, job, pod, box, key }: RunState, signal: AbortSignal): Promise<string | undefined> {
    if (job === undefined || job.suspended || job.ended !== undefined || pod !== undefined || isClaimed(run)) {
      return undefined;
    }
    const { podCreatedSeconds } = (box ?? WITHOUT_BOX).spec.bounds;
    const ageMs = this.deps.clock.now() - job.activeSince;
    return await this.#refusals.of({ key, job, ageMs, limitMs: podCreatedSeconds * 1000 }, signal);
  }

  /**
   * Nothing was executed. The status is written first, on condition that the run has not changed since it was seen without a
   * claim: a pod that claims it at this very moment wins, and its Job stays.
   */
  async #returnToQueue(
    { run, job, boxName }: RunState,
    message: string,
    signal: AbortSignal,
  ): Promise<ReconcileResult> {
    this.queue.pause(boxName, 'NoCapacity');
    this.deps.metrics.returned();
    // The cause may be another one than the last time.
    const why = { reason: 'NoCapacity', message: returnText('NoCapacity', message) } as const;
    const waiting = { reason: why.reason, details: why.message };
    if (await showWaiting(this.writer, run, waiting, signal)) this.deps.onReturned?.(run, why);
    if (job !== undefined && !job.deleting) await this.writer.deleteJob(job, signal);
    return {};
  }

  async #finish(state: RunState, finish: Finish, signal: AbortSignal): Promise<ReconcileResult | void> {
    if (finish.missing !== undefined && (await this.#isThere(state, finish.missing, signal))) {
      return { requeueAfterMs: CACHE_LAG_MS };
    }
    return await this.writer.finish(state.run, await this.#explained(state, finish, signal), signal);
  }

  /** Adds what Kubernetes says about the pod, where that tells more than the outcome alone. */
  async #explained({ pod }: RunState, { outcome, explain }: Finish, signal: AbortSignal): Promise<FoundOutcome> {
    if (explain === undefined || pod === undefined) return outcome;
    const { api } = this.deps;
    const warning =
      explain === 'pod'
        ? await latestWarning(api, pod, signal)
        : await missingPullSecrets(api, { namespace: pod.namespace, namePrefix: pod.name }, signal);
    return warning === undefined
      ? outcome
      : { ...outcome, message: `${outcome.message} Kubernetes says: ${sentence(warning)}` };
  }

  /** Asks the API server whether a Job, pod or node that the cache does not show is there. */
  async #isThere({ run, pod, namespace, uid }: RunState, kind: MissingKind, signal: AbortSignal): Promise<boolean> {
    const { api } = this.deps;
    switch (kind) {
      case 'node':
        return (await liveUid(api, Nodes, { name: pod?.node ?? '' }, signal)) !== undefined;
      case 'pod': {
        const { claim } = run.status ?? {};
        if (claim === undefined) return false;
        return (await liveUid(api, Pods, { namespace, name: claim.podName }, signal)) === claim.podUid;
      }
      case 'job': {
        const job = await orUndefined(api.get(Jobs, { namespace, name: run.metadata.name }, { signal }));
        return job?.metadata.ownerReferences?.some((owner) => owner.uid === uid) === true;
      }
    }
  }
}
