/**
 * One look at one run: ended -> deleted -> executed -> waiting. Each step decides with pure functions and
 * makes at most one write to the run's status. The gateway writes the claim, usage and the finish; whoever is first wins.
 */
import { findCondition, isTrue } from '../../api/conditions.js';
import { outcomeOf, returnText, sentence, waitText } from '../../run/outcome.js';
import type { FoundOutcome } from '../../run/outcome.js';
import type { QueueReason } from '../../run/reasons.js';
import { isClaimed, isTerminal, agentUidOf } from '../../run/status.js';
import type { ResourceType } from '../../api/meta.js';
import { Agents } from '../../api/v1alpha1/agent.js';
import { BoxSpec } from '../../api/v1alpha1/box.js';
import { Jobs, Nodes, Pods } from '../../kube/core-types.js';
import { isNotFound, orUndefined } from '../../kube/errors.js';
import type { ObjectRef } from '../../kube/types.js';
import type { ReconcileResult } from '../../runtime/controller.js';
import { describeEmpty } from '../budget/exhausted-budgets.js';
import type { RunDependencies } from './dependencies.js';
import { createJob } from './admission/create-job.js';
import type { CreateResult } from './admission/create-job.js';
import { DisruptedPods } from './execution/disrupted-pods.js';
import { isUnanswered, lastingFailure } from './admission/job-refusal.js';
import { Marks } from './marks.js';
import { isOver, isPodEnded, observe } from './execution/observe.js';
import type { Decision, MissingKind } from './execution/observe.js';
import { PodRefusals } from './execution/pod-refusals.js';
import type { RunQueue } from './admission/run-queue.js';
import { gather, queuedRunOf } from './run-state.js';
import type { RunState } from './run-state.js';
import { RunWriter } from './run-writer.js';
import { Settler } from './settlement/settle.js';
import { latestWarning } from './execution/warnings.js';
import type { ControllerRun } from '../../projections/agent-run.js';
import type { ControllerJob } from '../../projections/job.js';

/** The caches are behind the API server: look again soon. */
const CACHE_LAG_MS = 2_000;
/**
 * A pod that is not up by then is shown as Starting instead of the reason for which the run waited. In a burst many pods take
 * longer than usual, and a write for each would hold them up further.
 */
const STARTING_SHOWN_MS = 30_000;
/** A Job that Kueue has not started by then is shown as waiting for it. */
const KUEUE_SHOWN_MS = 10_000;
/** Which limit a run meets changes with every run that starts: one that waits for its turn says another reason after this time. */
const OTHER_LIMIT_SHOWN_MS = 60_000;
const LIMITS: ReadonlySet<string> = new Set<QueueReason>([
  'SessionBusy',
  'AgentLimit',
  'BoxLimit',
  'InstallationLimit',
]);
/** A cancelled run that goes on for longer is noted in its status, so that its bound survives a change of the leader. */
const CANCEL_NOTED_MS = 5_000;
/** A Job that could not be created for so long, by whatever error, is shown as that; before, it is tried again within seconds. */
const NOT_CREATED_SHOWN_MS = 10_000;
/** How often a run that waits for a budget looks why it waits. */
const BUDGET_LOOK_MS = 60_000;
/** Bounds of a run whose Box is gone: the defaults. */
const WITHOUT_BOX = { spec: BoxSpec.parse({ workspace: 'unknown' }) };

export class RunReconciler {
  readonly #deps: RunDependencies;
  readonly #queue: RunQueue;
  readonly #wake: (key: string) => void;
  readonly #marks: Marks;
  readonly #writer: RunWriter;
  readonly #settler: Settler;
  readonly #refusals: PodRefusals;
  readonly #disrupted = new DisruptedPods();

  /** `wake` is called with other runs that got a place. */
  constructor(deps: RunDependencies, queue: RunQueue, wake: (key: string) => void) {
    this.#deps = deps;
    this.#queue = queue;
    this.#wake = wake;
    this.#marks = new Marks(deps.clock);
    this.#writer = new RunWriter(deps.api, deps.clock);
    this.#settler = new Settler(deps, this.#writer);
    this.#refusals = new PodRefusals(deps.api);
  }

  /** Notes what reconciles cannot see any more; returns unsubscribe. */
  watch(): () => void {
    return this.#deps.caches.pods.onChange((change) => this.#disrupted.noted(change));
  }

  async reconcile(key: string, signal: AbortSignal): Promise<ReconcileResult | void> {
    this.#queue.update(key, queuedRunOf(this.#deps.caches, key));
    const state = gather(this.#deps.caches, key);
    if (state === undefined) {
      this.#forget(key);
      return this.#settler.forget(key);
    }
    if (isTerminal(state.run)) {
      this.#forget(key);
      return await this.#settler.settle(state, signal);
    }
    if (state.run.metadata.deletionTimestamp !== undefined) {
      const outcome = state.terminating
        ? outcomeOf('NamespaceTerminating')
        : outcomeOf('Cancelled', 'The run was deleted before it ended.');
      return await this.#writer.finish(state.run, outcome, signal);
    }
    if (state.job !== undefined || isClaimed(state.run)) return await this.#observe(state, signal);
    if (state.run.spec.cancelRequested === true) {
      return await this.#writer.finish(state.run, outcomeOf('Cancelled', 'Cancelled while it waited.'), signal);
    }
    if (state.terminating) return await this.#writer.finish(state.run, outcomeOf('NamespaceTerminating'), signal);
    return (await this.#requireAgent(state, signal)) ?? (await this.#admit(state, signal));
  }

  /** What was noted while the run waited and worked. */
  #forget(key: string): void {
    this.#disrupted.forget(key);
    this.#marks.forget(key);
    this.#refusals.forget(key);
  }

  /** A Job is there, or was: every bound of a working run. */
  async #observe(state: RunState, signal: AbortSignal): Promise<ReconcileResult | void> {
    const { run, job, pod, node, volume, terminating } = state;
    const nodeGone = pod?.node !== undefined && node === undefined && !isPodEnded(pod);
    const decision = observe({
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
        cancelling: this.#cancelling(state),
        ended: this.#marks.elapsed(state, 'ended', isOver(pod, run, job)),
        nodeGone: this.#marks.elapsed(state, 'node-gone', nodeGone),
      },
      now: this.#deps.clock.now(),
    });
    return await this.#act(state, decision, signal);
  }

  /** How long the run is being cancelled: since the status says so, or since this process saw it. */
  #cancelling(state: RunState): number {
    const { run } = state;
    const seen = this.#marks.elapsed(state, 'cancelling', run.spec.cancelRequested === true);
    const noted = findCondition(run.status?.conditions, 'Cancelling');
    if (noted === undefined) return seen;
    return Math.max(seen, this.#deps.clock.now() - Date.parse(noted.lastTransitionTime));
  }

  async #podRefusal({ run, job, pod, box, key }: RunState, signal: AbortSignal): Promise<string | undefined> {
    if (job === undefined || job.suspended || job.ended !== undefined || pod !== undefined || isClaimed(run)) {
      return undefined;
    }
    const { podCreatedSeconds } = (box ?? WITHOUT_BOX).spec.bounds;
    const ageMs = this.#deps.clock.now() - job.activeSince;
    return await this.#refusals.of({ key, job, ageMs, boundMs: podCreatedSeconds * 1000 }, signal);
  }

  async #act(state: RunState, decision: Decision, signal: AbortSignal): Promise<ReconcileResult | void> {
    switch (decision.do) {
      case 'wait':
        return { requeueAfterMs: Math.min(decision.ms, await this.#showProgress(state, signal)) };
      case 'requeue':
        return await this.#returnToQueue(state, decision.message, signal);
      case 'finish':
        if (decision.missing !== undefined && (await this.#isThere(state, decision.missing, signal))) {
          return { requeueAfterMs: CACHE_LAG_MS };
        }
        return await this.#writer.finish(state.run, await this.#explained(state, decision, signal), signal);
    }
  }

  /** The outcome with what Kubernetes says about the pod, where that tells more. */
  async #explained(
    { pod }: RunState,
    { outcome, explain }: Extract<Decision, { do: 'finish' }>,
    signal: AbortSignal,
  ): Promise<FoundOutcome> {
    if (explain === undefined || pod === undefined) return outcome;
    const warning = await latestWarning(this.#deps.api, pod, signal);
    return warning === undefined
      ? outcome
      : { ...outcome, message: `${outcome.message} Kubernetes says: ${sentence(warning)}` };
  }

  /** At most one write that says where the run is. Returns the milliseconds until the next one is due. */
  async #showProgress(state: RunState, signal: AbortSignal): Promise<number> {
    if (isClaimed(state.run)) return await this.#noteCancel(state, signal);
    return state.job?.suspended === true
      ? await this.#showKueue(state, state.job, signal)
      : await this.#showStarting(state, signal);
  }

  async #noteCancel(state: RunState, signal: AbortSignal): Promise<number> {
    const { run } = state;
    if (run.spec.cancelRequested !== true || isTrue(run.status?.conditions, 'Cancelling')) return Infinity;
    const left = CANCEL_NOTED_MS - this.#cancelling(state);
    if (left > 0) return left;
    await this.#writer.cancelling(run, signal);
    return Infinity;
  }

  async #showKueue({ run }: RunState, job: ControllerJob, signal: AbortSignal): Promise<number> {
    const left = job.createdAt + KUEUE_SHOWN_MS - this.#deps.clock.now();
    if (left > 0) return left;
    await this.#wait(run, 'WaitingForKueue', signal);
    return Infinity;
  }

  /**
   * A run that waited before still says why while its pod starts. The claim corrects that; a pod that takes long is worth a
   * write of its own. Returns the milliseconds until it is due.
   */
  async #showStarting({ run, job }: RunState, signal: AbortSignal): Promise<number> {
    if (job === undefined || job.deleting || !isTrue(run.status?.conditions, 'Queued')) return Infinity;
    const left = job.activeSince + STARTING_SHOWN_MS - this.#deps.clock.now();
    if (left > 0) return left;
    await this.#writer.admitted(run, signal);
    return Infinity;
  }

  /**
   * Nothing was executed. The status is written first, under the version that was seen without a claim: a pod that
   * claims the run in this moment wins, and its Job stays.
   */
  async #returnToQueue(
    { run, job, boxName }: RunState,
    message: string,
    signal: AbortSignal,
  ): Promise<ReconcileResult> {
    this.#queue.pause(boxName, 'NoCapacity');
    this.#deps.metrics.returned();
    // One that waited for room before may be back for another cause.
    const why = { reason: 'NoCapacity', message: returnText('NoCapacity', message) } as const;
    if (await this.#wait(run, why.reason, signal, why.message)) this.#deps.onReturned?.(run, why);
    if (job !== undefined && !job.deleting) await this.#writer.deleteJob(job, signal);
    return {};
  }

  /** Ends a run without its agent. The caches of runs and agents are not in step, so the API server has the last word. */
  async #requireAgent({ run, agent, namespace }: RunState, signal: AbortSignal): Promise<ReconcileResult | undefined> {
    const wanted = agentUidOf(run);
    if (agent !== undefined && (wanted === undefined || agent.metadata.uid === wanted)) return undefined;
    const uid = await this.#liveUid(Agents, { namespace, name: run.spec.agent }, signal);
    if (uid === undefined) {
      const outcome = outcomeOf('AgentNotFound', `There is no Agent ${run.spec.agent} in namespace ${namespace}.`);
      await this.#writer.finish(run, outcome, signal);
      return {};
    }
    if (wanted === undefined || uid === wanted) return { requeueAfterMs: CACHE_LAG_MS };
    await this.#writer.finish(run, outcomeOf('AgentDeleted'), signal);
    return {};
  }

  /** A place -> the Job; no place -> the reason, written once. */
  async #admit(state: RunState, signal: AbortSignal): Promise<ReconcileResult> {
    const { key, uid, run } = state;
    if (this.#queue.isJobCreated(key)) return { requeueAfterMs: CACHE_LAG_MS };
    if (!this.#queue.isAdmitted(key, uid)) {
      for (const other of this.#queue.admitNext()) if (other !== key) this.#wake(other);
    }
    if (this.#queue.isAdmitted(key, uid)) return await this.#start(state, signal);
    const reason = this.#queue.reasonFor(key);
    if (reason === undefined) return {};
    this.#deps.budgets?.release(run);
    if (reason !== 'WaitingForBudget') return await this.#waitForTurn(state, reason, signal);
    const empty = this.#deps.budgets?.empty.of(state.boxName, run.spec.agent);
    await this.#wait(run, reason, signal, empty === undefined ? undefined : describeEmpty(empty));
    // What holds it back may be a limit by then; the budget wakes those alone that can start.
    return { requeueAfterMs: BUDGET_LOOK_MS };
  }

  /** The reason, written once: a limit in the place of another one is no news before it has stood for a while. */
  async #waitForTurn(state: RunState, reason: QueueReason, signal: AbortSignal): Promise<ReconcileResult> {
    const { run } = state;
    const queued = findCondition(run.status?.conditions, 'Queued');
    const says = queued?.status === 'True' ? queued.reason : '';
    const isOther = says !== reason && LIMITS.has(says) && LIMITS.has(reason);
    const stood = this.#marks.elapsed(state, 'other-limit', isOther);
    if (isOther && stood < OTHER_LIMIT_SHOWN_MS) return { requeueAfterMs: OTHER_LIMIT_SHOWN_MS - stood };
    await this.#wait(run, reason, signal);
    return {};
  }

  async #start(state: RunState, signal: AbortSignal): Promise<ReconcileResult> {
    const agentUid = state.agent?.metadata.uid ?? '';
    const run = await this.#writer.takeOn(state.run, agentUid, signal);
    const created = await this.#createJob({ ...state, run }, signal);
    switch (created.result) {
      case 'created':
        this.#queue.jobCreated(state.key);
        return {};
      case 'other-job':
        // The run keeps its place, so that nobody tries again before the garbage collector had its time.
        return { requeueAfterMs: CACHE_LAG_MS };
      case 'refused':
        // First of all: when this fails, as while the API server is away, the run keeps its place and is tried again soon.
        await this.#wait(run, created.reason, signal, created.message);
        // A missing volume concerns one agent, and its own gate holds it back.
        if (created.reason !== 'WorkspaceNotReady') this.#queue.pause(state.boxName, created.reason);
        this.#queue.giveBack(state.key);
        this.#deps.budgets?.release(run);
        return {};
      case 'no-budget':
        this.#queue.giveBack(state.key);
        await this.#wait(run, 'WaitingForBudget', signal, created.message);
        return { requeueAfterMs: BUDGET_LOOK_MS };
      case 'invalid':
        this.#queue.giveBack(state.key);
        await this.#writer.finish(run, outcomeOf('InvalidRun', created.message), signal);
        return {};
    }
  }

  /**
   * Rejects for an error that is new, or of an API server that is away: the engine tries again soon. Also without an answer in
   * time: then the run keeps its place, since its Job may come.
   */
  async #createJob(state: RunState, signal: AbortSignal): Promise<CreateResult> {
    try {
      const created = await createJob(this.#deps, state, signal);
      this.#marks.elapsed(state, 'not-created', false);
      return created;
    } catch (error) {
      const message = lastingFailure(error);
      const failing = this.#marks.elapsed(state, 'not-created', message !== undefined);
      if (message === undefined || failing < NOT_CREATED_SHOWN_MS) throw error;
      if (!isUnanswered(error)) return { result: 'refused', reason: 'JobNotCreated', message };
      await this.#wait(state.run, 'JobNotCreated', signal, message);
      throw error;
    }
  }

  /** `details` take the place of what the reason says in general. False when the status says so already. */
  async #wait(run: ControllerRun, reason: QueueReason, signal: AbortSignal, details?: string): Promise<boolean> {
    if (waitsFor(run, reason, details)) return false;
    await this.#writer.queue(run, { reason, message: details ?? waitText(reason) }, signal);
    return true;
  }

  /** Asks the API server whether a Job, pod or node that the cache does not show is there. */
  async #isThere({ run, pod, namespace, uid }: RunState, kind: MissingKind, signal: AbortSignal): Promise<boolean> {
    if (kind === 'node') return (await this.#liveUid(Nodes, { name: pod?.node ?? '' }, signal)) !== undefined;
    const { claim } = run.status ?? {};
    if (kind === 'pod') {
      if (claim === undefined) return false;
      return (await this.#liveUid(Pods, { namespace, name: claim.podName }, signal)) === claim.podUid;
    }
    try {
      const job = await this.#deps.api.get(Jobs, { namespace, name: run.metadata.name }, { signal });
      return job.metadata.ownerReferences?.some((owner) => owner.uid === uid) === true;
    } catch (error) {
      if (isNotFound(error)) return false;
      throw error;
    }
  }

  async #liveUid(type: ResourceType, ref: ObjectRef, signal: AbortSignal): Promise<string | undefined> {
    const live = await orUndefined(this.#deps.api.get(type, ref, { signal }));
    return live?.metadata.uid;
  }
}

/** Whether the status says so already. */
function waitsFor(run: ControllerRun, reason: QueueReason, details?: string): boolean {
  const queued = findCondition(run.status?.conditions, 'Queued');
  if (queued?.status !== 'True' || queued.reason !== reason) return false;
  return details === undefined || queued.message === details;
}
