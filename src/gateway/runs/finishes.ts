/** The end of a run as the gateway writes it: reported by the runner, refused at the claim, or silent for too long. */
import { disruptionOf, outcomeOfDisruption } from '../../run/disruption.js';
import { reportedOutcome } from '../../run/reported-outcome.js';
import { outcomeOf, phaseOf, type FoundOutcome, type RunOutcome } from '../../run/outcome.js';
import { isTerminal } from '../../run/status.js';
import { warningsIn, withWarnings } from '../../run/warnings.js';
import { MAX_STATUS_OUTPUT_BYTES, type AgentRun, type RunPhase } from '../../api/v1alpha1/agent-run.js';
import { Pods } from '../../kube/core-types.js';
import type { KubeApi } from '../../kube/types.js';
import type { Logger } from '../../observability/logger.js';
import type { GatewayEnd } from '../../run/transition.js';
import type { FinishAnswer, FinishRequest, RunEvent } from '../../protocol/run.js';
import { isoNow, type Clock } from '../../runtime/clock.js';
import { SequenceConflictError, type TranscriptLog } from '../../transcript/log.js';
import type { RunIdentity } from '../auth/run-authenticator.js';
import { GatewayError, runEnded, tryAgain } from '../errors.js';
import type { KeyedLock } from '../keyed-lock.js';
import type { GatewayMetrics } from '../metrics.js';
import { pendingRecordOf } from '../../run/pending.js';
import type { Ownership } from './ownership.js';
import type { RunStore } from './run-store.js';
import type { Steering } from './steering.js';
import { logFields, workOf, type ServedRun, type ServedRuns } from './served-runs.js';

const UNKNOWN: RunOutcome = { reason: 'RunnerError', message: 'The runner reported an outcome that is not known.' };

export interface RunFinisherOptions {
  api: Pick<KubeApi, 'get'>;
  clock: Clock;
  store: RunStore;
  served: ServedRuns;
  ownership: Pick<Ownership, 'resolve'>;
  lock: KeyedLock;
  steering: Pick<Steering, 'taken'>;
  metrics: Pick<GatewayMetrics, 'finished' | 'reported'>;
  log: Logger;
}

export class RunFinisher {
  readonly #options: RunFinisherOptions;

  constructor(options: RunFinisherOptions) {
    this.#options = options;
  }

  /**
   * Stores the last events and the outcome. The first outcome wins: the pod of an ended run gets the phase that stands.
   * Rejects with 409, 410 (another pod's run has ended) or 421.
   */
  async finish(identity: RunIdentity, request: FinishRequest): Promise<FinishAnswer> {
    const ref = { namespace: identity.namespace, name: identity.runName };
    const known = endedFor(await this.#options.store.find(ref), identity);
    if (known !== undefined) return known;
    const served = await this.#options.ownership.resolve(identity, request.epoch);
    return this.#options.lock.run(served.uid, async () => {
      // The same finish may have come twice, and the first one was in work.
      const ended = endedFor(await this.#options.store.find(ref), identity);
      if (ended !== undefined) return ended;
      served.call?.abort();
      served.live.tell(request.events);
      await this.#closeLog(served, request);
      // Before the end: afterwards the session is free, and what was taken must not be executed as well.
      await this.#options.steering.taken(served.ref, request.events);
      const outcome = await this.#explained(identity, reportedOutcome(request.outcome) ?? UNKNOWN);
      const { output } = request.outcome;
      const said = output === null ? outcome : { ...outcome, output };
      const { atRest } = request.outcome;
      return { phase: await this.#end(served, said, { pending: pendingRecordOf(request.outcome), atRest }) };
    });
  }

  /** Ends a run that was silent for too long; nothing happens when it was heard meanwhile. */
  async lose(served: ServedRun, boundSeconds: number): Promise<void> {
    const { clock, lock } = this.#options;
    await lock.run(served.uid, async () => {
      if (clock.monotonic() - served.heardAt < boundSeconds * 1000) return;
      const what = `The run sent nothing for ${boundSeconds} seconds (spec.bounds.heartbeatSeconds of its Box).`;
      served.call?.abort();
      await this.#storeTold(served);
      await this.#end(served, outcomeOf('HeartbeatLost', what));
    });
  }

  /** Ends a run at its claim. */
  async refuse(run: AgentRun, outcome: RunOutcome): Promise<void> {
    const { clock, store, metrics } = this.#options;
    const ref = { namespace: run.metadata.namespace ?? '', name: run.metadata.name };
    const now = isoNow(clock);
    const { isWritten } = await store.update(ref, () => ({ type: 'finished', by: 'gateway', outcome, now }));
    if (isWritten) metrics.finished(phaseOf(outcome.reason), outcome.reason);
  }

  /** Adds what only this pod knows to a run that the controller ended: usage and transcript may grow after the outcome. */
  async settle(served: ServedRun): Promise<void> {
    const { lock, store } = this.#options;
    await lock.run(served.uid, async () => {
      served.call?.abort();
      await this.#storeTold(served);
      await store.update(served.ref, () => ({ type: 'usage-closed', work: workOf(served) }), { live: true });
      this.#options.served.drop(served);
    });
  }

  /** The runner is lost and stores nothing any more: what it told is all that the next run of the session can know. */
  async #storeTold(served: ServedRun): Promise<void> {
    const log = await this.#options.served.logOf(served, this.#options.store.get(served.ref));
    const { events } = served.live.after(log.ack);
    if (events.length > 0) await log.close(events);
    await this.#options.steering.taken(served.ref, events);
  }

  async #closeLog(served: ServedRun, request: FinishRequest): Promise<void> {
    const { store, metrics } = this.#options;
    const run = store.get(served.ref);
    const log = await this.#options.served.logOf(served, run);
    served.warnings = withWarnings(served.warnings, warningsIn(request.events));
    try {
      await log.close(withOutput(request, log, run?.status?.claim?.at ?? ''));
    } catch (error) {
      if (!(error instanceof SequenceConflictError)) throw error;
      metrics.reported('conflict');
      throw new GatewayError(409, error.message, { type: 'SequenceConflict' });
    }
  }

  /**
   * A pod that is told to stop does not know why; its condition DisruptionTarget, which is set before it is deleted, does. One
   * read in a rare case; without an answer the words of the runner stand.
   */
  async #explained({ namespace, podName, podUid }: RunIdentity, outcome: RunOutcome): Promise<RunOutcome> {
    if (outcome.reason !== 'Interrupted') return outcome;
    const { api, log } = this.#options;
    try {
      const pod = await api.get(Pods, { namespace, name: podName });
      return (pod.metadata.uid === podUid && outcomeOfDisruption(disruptionOf(pod), 'told us')) || outcome;
    } catch (error) {
      log.debug({ err: error, namespace, pod: podName }, 'why a pod is told to stop could not be read');
      return outcome;
    }
  }

  async #end(
    served: ServedRun,
    outcome: FoundOutcome,
    said: Pick<GatewayEnd, 'pending' | 'atRest'> = {},
  ): Promise<FinishAnswer['phase']> {
    const { clock, store, metrics, log } = this.#options;
    const { run, isWritten } = await store.update(served.ref, () => {
      const end = { work: workOf(served), ...said };
      return { type: 'finished', by: 'gateway', outcome, end, now: isoNow(clock) };
    });
    if (!isTerminal(run)) throw tryAgain('another gateway pod took over');
    const phase = endedPhase(run);
    // Somebody else ended it: what this pod knows is added by settle().
    if (!isWritten) return phase;
    this.#options.served.drop(served);
    metrics.finished(phase, outcome.reason);
    log.info({ ...logFields(served), phase, reason: outcome.reason, steps: served.usage.steps }, 'run finished');
    return phase;
  }
}

/**
 * The status holds a short output whole; a long one must be in the transcript. The time of the event does not
 * come from a clock: the same finish must give the same event when it is repeated.
 */
function withOutput(request: FinishRequest, log: TranscriptLog, claimedAt: string): RunEvent[] {
  const { events, outcome } = request;
  const isThere = log.hasOutput || events.some(({ type }) => type === 'output');
  if (outcome.output === null || fits(outcome.output) || isThere) return events;
  const last = events.at(-1);
  const seq = Math.max(log.ack, last?.seq ?? 0) + 1;
  return [...events, { type: 'output', seq, at: last?.at ?? claimedAt, text: outcome.output }];
}

/** The answer for a run that has ended, undefined while it works. Throws 410 for any other pod than its own. */
function endedFor(run: AgentRun, identity: RunIdentity): FinishAnswer | undefined {
  if (!isTerminal(run)) return undefined;
  if (run.status?.claim?.podUid !== identity.podUid) throw runEnded(run.status?.phase);
  return { phase: endedPhase(run) };
}

function endedPhase(run: AgentRun): FinishAnswer['phase'] {
  const phase: RunPhase = run.status?.phase ?? 'running';
  if (phase === 'running') throw new Error(`run ${run.metadata.name} has not ended`);
  return phase;
}

function fits(output: string): boolean {
  return Buffer.byteLength(output) <= MAX_STATUS_OUTPUT_BYTES;
}
