/**
 * One look at one run, as its state machine (docs/architecture.md#run-states): each state has a folder, and in it one file
 * with the effects. Decisions are pure functions, and one look writes the run's status at most once. The gateway writes the
 * claim, usage and the finish; whoever writes an outcome first wins.
 *
 * Which file decides about which condition of a run (src/run/status-writer.ts enforces who may write it at all):
 *
 * | Condition  | Owner                                                                                           |
 * | ---------- | ----------------------------------------------------------------------------------------------- |
 * | Queued     | admission/show-waiting.ts; False by execution/show-progress.ts, or by the gateway with the claim |
 * | Started    | the gateway with the claim (src/gateway/runs/claims.ts)                                         |
 * | Cancelling | execution/show-progress.ts                                                                      |
 * | Finished   | the gateway (src/gateway/runs/finishes.ts); where no finish can come: this file, admission/admit.ts or execution/supervise.ts |
 * | Archived   | the archive controller (src/controllers/archive/controller.ts)                                  |
 */
import { outcomeOf } from '../../run/outcome.js';
import type { RunOutcome } from '../../run/outcome.js';
import { isClaimed, isTerminal } from '../../run/status.js';
import type { ReconcileResult } from '../../runtime/controller.js';
import { Admission } from './admission/admit.js';
import { queuedRunOf } from './admission/queued-run.js';
import type { RunQueue } from './admission/run-queue.js';
import type { RunDependencies } from './dependencies.js';
import { CACHE_LAG_MS } from './live-uid.js';
import { Supervisor } from './execution/supervise.js';
import { gather } from './run-state.js';
import type { RunState } from './run-state.js';
import { RunWriter } from './run-writer.js';
import { Settler } from './settlement/settle.js';

export class RunReconciler {
  readonly #deps: RunDependencies;
  readonly #queue: RunQueue;
  readonly #writer: RunWriter;
  readonly #admission: Admission;
  readonly #supervisor: Supervisor;
  readonly #settler: Settler;

  /** `wake` is called with other runs that got a reservation. */
  constructor(deps: RunDependencies, queue: RunQueue, wake: (key: string) => void) {
    const writer = new RunWriter(deps.api, deps.clock, deps.log);
    this.#deps = deps;
    this.#queue = queue;
    this.#writer = writer;
    this.#admission = new Admission({ deps, queue, writer, wake });
    this.#supervisor = new Supervisor(deps, queue, writer);
    this.#settler = new Settler(deps, writer);
  }

  /** Remembers what a later look can no longer see; returns unsubscribe. */
  watch(): () => void {
    return this.#supervisor.watch();
  }

  async reconcile(key: string, signal: AbortSignal): Promise<ReconcileResult | void> {
    this.#queue.update(key, queuedRunOf(this.#deps.caches, key));
    const state = gather(this.#deps.caches, key);
    if (state === undefined || isTerminal(state.run)) {
      this.#admission.forget(key);
      this.#supervisor.forget(key);
    }
    if (state === undefined) {
      this.#writer.own.forget(key);
      return this.#settler.forget(key);
    }
    // The watch event of the write wakes this run again.
    if (this.#writer.own.hasReplaced(state.run.metadata)) return { requeueAfterMs: CACHE_LAG_MS };
    if (isTerminal(state.run)) return await this.#settler.settle(state, signal);
    if (isDeleted(state)) return await this.#writer.finish(state.run, outcomeOfDeletion(state), signal);
    if (hasBegun(state)) return await this.#supervisor.supervise(state, signal);
    return await this.#admission.admit(state, signal);
  }
}

function isDeleted({ run }: RunState): boolean {
  return run.metadata.deletionTimestamp !== undefined;
}

function outcomeOfDeletion({ terminating }: RunState): RunOutcome {
  return terminating
    ? outcomeOf('NamespaceTerminating')
    : outcomeOf('Cancelled', 'The run was deleted before it ended.');
}

/** It has a Job, or has been claimed by the pod of one. */
function hasBegun({ run, job }: RunState): boolean {
  return job !== undefined || isClaimed(run);
}
