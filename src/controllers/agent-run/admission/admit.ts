/**
 * Admission: what happens to a run that has no Job yet. If it was cancelled or its agent is gone, it ends here; if it has a
 * reservation, it gets its Job; otherwise its status says why it waits. run-queue.ts holds the queue and the reservations,
 * limits-and-fairness.ts the rules by which they are made.
 */
import type { ControllerRun } from '../../../projections/agent-run.js';
import { outcomeOf } from '../../../run/outcome.js';
import type { QueueReason } from '../../../run/reasons.js';
import { awaitsSession } from '../../../run/session/key.js';
import { agentUidOf } from '../../../run/status.js';
import { ANNOTATION_STARTED_UID } from '../../../api/labels.js';
import { Agents } from '../../../api/v1alpha1/agent.js';
import type { ReconcileResult } from '../../../runtime/controller.js';
import { describeExhausted } from '../../budget/exhausted-budgets.js';
import type { RunDependencies } from '../dependencies.js';
import { CACHE_LAG_MS, liveUid } from '../live-uid.js';
import { Marks } from '../marks.js';
import type { RunState } from '../run-state.js';
import { resumedSession } from './resumed-session.js';
import type { RunWriter } from '../run-writer.js';
import { createJob } from './create-job.js';
import type { CreateResult } from './create-job.js';
import { isUnanswered, lastingFailure } from './job-refusal.js';
import type { RunQueue } from './run-queue.js';
import { showWaiting, shownWaiting } from './show-waiting.js';
import type { Waiting } from './show-waiting.js';

/** The limit that holds a run back may change with every run that starts: a new one is shown only after it has stood this long. */
const OTHER_LIMIT_SHOWN_MS = 60_000;
const LIMITS: ReadonlySet<string> = new Set<QueueReason>([
  'SessionBusy',
  'AgentLimit',
  'BoxLimit',
  'InstallationLimit',
]);
/** A Job that could not be created for this long is reported, whatever the error; until then it is retried every few seconds. */
const NOT_CREATED_SHOWN_MS = 10_000;
/** Pods have their nodes within moments where there is room: waiting for those of other runs is told when it takes this long. */
const BEHIND_NEW_PODS_SHOWN_MS = 10_000;
/** How often the reason of a run that waits for a budget is looked at again. */
const BUDGET_LOOK_MS = 60_000;

export interface AdmissionOptions {
  deps: RunDependencies;
  queue: RunQueue;
  writer: RunWriter;
  /** Called for other runs that got a reservation. */
  wake: (key: string) => void;
}

export class Admission {
  readonly #deps: RunDependencies;
  readonly #queue: RunQueue;
  readonly #writer: RunWriter;
  readonly #wake: (key: string) => void;
  readonly #marks: Marks;

  constructor({ deps, queue, writer, wake }: AdmissionOptions) {
    this.#deps = deps;
    this.#queue = queue;
    this.#writer = writer;
    this.#wake = wake;
    this.#marks = new Marks(deps.clock);
  }

  async admit(state: RunState, signal: AbortSignal): Promise<ReconcileResult | void> {
    if (isCopyOfStarted(state.run)) return await this.#writer.finish(state.run, outcomeOf('Restored'), signal);
    if (state.run.spec.cancelRequested === true) {
      return await this.#writer.finish(state.run, outcomeOf('Cancelled', 'Cancelled while it waited.'), signal);
    }
    if (state.terminating) return await this.#writer.finish(state.run, outcomeOf('NamespaceTerminating'), signal);
    return (
      (await this.#requireAgent(state, signal)) ??
      (await this.#requireSession(state, signal)) ??
      (await this.#reserve(state, signal))
    );
  }

  /** The run waits no longer. */
  forget(key: string): void {
    this.#marks.forget(key);
  }

  /** Ends a run without its agent. The caches of runs and agents are not in step, so the API server has the last word. */
  async #requireAgent({ run, agent, namespace }: RunState, signal: AbortSignal): Promise<ReconcileResult | undefined> {
    const wanted = agentUidOf(run);
    if (agent !== undefined && (wanted === undefined || agent.metadata.uid === wanted)) return undefined;
    const uid = await liveUid(this.#deps.api, Agents, { namespace, name: run.spec.agent }, signal);
    if (uid === undefined) {
      const outcome = outcomeOf('AgentNotFound', `There is no Agent ${run.spec.agent} in namespace ${namespace}.`);
      await this.#writer.finish(run, outcome, signal);
      return {};
    }
    if (wanted === undefined || uid === wanted) return { requeueAfterMs: CACHE_LAG_MS };
    await this.#writer.finish(run, outcomeOf('AgentDeleted'), signal);
    return {};
  }

  /** Finds the session that spec.resume leads to, and notes it: from then on the run is one of it, and waits for its turn there. */
  async #requireSession({ run, agent }: RunState, signal: AbortSignal): Promise<ReconcileResult | undefined> {
    if (!awaitsSession(run)) return undefined;
    const found = await resumedSession(this.#deps, run, signal);
    if (found.kind === 'invalid') await this.#writer.finish(run, outcomeOf('InvalidRun', found.message), signal);
    if (found.kind === 'later' || agent === undefined) return { requeueAfterMs: CACHE_LAG_MS };
    if (found.kind === 'session') {
      await this.#writer.foundSession(run, agent.metadata.uid ?? '', found.sessionId, signal);
    }
    return {};
  }

  /** A reservation -> the Job; none -> the reason, written once. */
  async #reserve(state: RunState, signal: AbortSignal): Promise<ReconcileResult> {
    const { key, uid, run } = state;
    if (this.#queue.isJobCreated(key)) return { requeueAfterMs: CACHE_LAG_MS };
    if (!this.#queue.hasReservation(key, uid)) {
      for (const other of this.#queue.admitNext()) if (other !== key) this.#wake(other);
    }
    if (this.#queue.hasReservation(key, uid)) return await this.#start(state, signal);
    const reason = this.#queue.reasonFor(key);
    if (reason === undefined) return {};
    this.#deps.budgets?.release(run);
    if (reason !== 'WaitingForBudget') return await this.#waitForTurn(state, reason, signal);
    const exhausted = this.#deps.budgets?.exhausted.of(state.boxName, run.spec.agent);
    await this.#wait(
      run,
      { reason, details: exhausted === undefined ? undefined : describeExhausted(exhausted) },
      signal,
    );
    // By then a limit may hold it back instead; a budget that is free again wakes only the runs that can start.
    return { requeueAfterMs: BUDGET_LOOK_MS };
  }

  /** Writes the reason once: that one limit gave way to another is no news until it has stood for a while. */
  async #waitForTurn(state: RunState, reason: QueueReason, signal: AbortSignal): Promise<ReconcileResult> {
    const shown = shownWaiting(state.run)?.reason ?? '';
    const isBehind = this.#queue.isBehindNewPods(state.key);
    const behind = this.#marks.elapsed(state, 'behind-new-pods', isBehind);
    if (isBehind && behind < BEHIND_NEW_PODS_SHOWN_MS) return { requeueAfterMs: BEHIND_NEW_PODS_SHOWN_MS - behind };
    const isOther = shown !== reason && LIMITS.has(shown) && LIMITS.has(reason);
    const stood = this.#marks.elapsed(state, 'other-limit', isOther);
    if (isOther && stood < OTHER_LIMIT_SHOWN_MS) return { requeueAfterMs: OTHER_LIMIT_SHOWN_MS - stood };
    await this.#wait(state.run, { reason }, signal);
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
        // The run keeps its reservation, so that the next attempt comes after the garbage collector has had its time.
        return { requeueAfterMs: CACHE_LAG_MS };
      case 'refused':
        // This comes first: if it fails, say for lack of an API server, the reservation stands and the engine retries soon.
        await this.#wait(run, { reason: created.reason, details: created.message }, signal);
        // A missing volume concerns one agent, and its own gate holds it back.
        if (created.reason !== 'WorkspaceNotReady') this.#queue.pause(state.boxName, created.reason);
        this.#queue.release(state.key);
        this.#deps.budgets?.release(run);
        return {};
      case 'no-budget':
        this.#queue.release(state.key);
        await this.#wait(run, { reason: 'WaitingForBudget', details: created.message }, signal);
        return { requeueAfterMs: BUDGET_LOOK_MS };
      case 'invalid':
        this.#queue.release(state.key);
        await this.#writer.finish(run, outcomeOf('InvalidRun', created.message), signal);
        return {};
    }
  }

  /**
   * Rejects, so that the engine retries soon, for an error that is new and for an API server that is unavailable; also when no
   * answer came in time: the run then keeps its reservation, since its Job may yet appear.
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
      await this.#wait(state.run, { reason: 'JobNotCreated', details: message }, signal);
      throw error;
    }
  }

  #wait(run: ControllerRun, waiting: Waiting, signal: AbortSignal): Promise<boolean> {
    return showWaiting(this.#writer, run, waiting, signal);
  }
}

/** The caches keep the annotation of copies alone. */
function isCopyOfStarted({ metadata }: ControllerRun): boolean {
  return metadata.annotations?.[ANNOTATION_STARTED_UID] !== undefined;
}
