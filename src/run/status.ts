/**
 * The run's status as one pure derivation: conditions are the truth, phase and reason follow from them.
 * Writers: the gateway (claim, usage, finish) and the controller (all else, and the outcome where no finish can come).
 * See docs/architecture.md#run-states.
 */
import type { Condition } from '../api/v1alpha1/common.js';
import type { AgentRun } from '../api/v1alpha1/agent-run.js';
import { findCondition, isTrue, setCondition } from '../api/conditions.js';
import type { QueueReason } from './reasons.js';
import { phaseOf, type RunOutcome } from './outcome.js';

export type RunStatus = NonNullable<AgentRun['status']>;

/** Whether the run has ended; a terminal status never changes again. */
export function isTerminal(run: Pick<AgentRun, 'status'>): boolean {
  const phase = run.status?.phase;
  return phase === 'done' || phase === 'error' || phase === 'cancelled';
}

/** UID of the Agent that executes the run: noted at acceptance, or by the controller for a run made by hand. */
export function agentUidOf(run: {
  spec: Pick<AgentRun['spec'], 'agentUid'>;
  status?: Partial<RunStatus>;
}): string | undefined {
  return run.spec.agentUid ?? run.status?.agentUid;
}

/** Whether a pod has claimed the run. */
export function isClaimed(run: Pick<AgentRun, 'status'>): boolean {
  return run.status?.claim !== undefined;
}

/** Derives phase, reason and message from the conditions. */
function derive(conditions: readonly Condition[]): Pick<RunStatus, 'phase' | 'reason' | 'message'> {
  const finished = findCondition(conditions, 'Finished');
  if (finished?.status === 'True') {
    return { phase: phaseOf(finished.reason), reason: finished.reason, message: finished.message };
  }
  if (isTrue(conditions, 'Started')) {
    const started = findCondition(conditions, 'Started');
    return { phase: 'running', reason: 'Working', message: started?.message ?? '' };
  }
  const queued = findCondition(conditions, 'Queued');
  if (queued?.status === 'True') return { phase: 'running', reason: queued.reason, message: queued.message };
  return { phase: 'running', reason: 'Starting', message: '' };
}

function withConditions(status: RunStatus | undefined, conditions: Condition[]): RunStatus {
  return { ...status, conditions, ...derive(conditions) };
}

/** The status of a run that waits. */
export function queuedStatus(run: AgentRun, reason: QueueReason, message: string, now: string): RunStatus {
  return withConditions(
    run.status,
    setCondition(run.status?.conditions, { type: 'Queued', status: 'True', reason, message }, now),
  );
}

/** The status of a run that is no longer queued because its Job is about to exist. */
export function admittedStatus(run: AgentRun, now: string): RunStatus {
  return withConditions(
    run.status,
    setCondition(run.status?.conditions, { type: 'Queued', status: 'False', reason: 'Admitted', message: '' }, now),
  );
}

/** The status of a working run that is being cancelled: says since when, for the bound on its end. */
export function cancellingStatus(run: AgentRun, now: string): RunStatus {
  return withConditions(
    run.status,
    setCondition(
      run.status?.conditions,
      { type: 'Cancelling', status: 'True', reason: 'CancelRequested', message: '' },
      now,
    ),
  );
}

/** The status of a run that a pod has claimed. */
export function claimedStatus(run: AgentRun, claim: NonNullable<RunStatus['claim']>, now: string): RunStatus {
  let conditions: Condition[] = run.status?.conditions ?? [];
  if (isTrue(conditions, 'Queued')) {
    conditions = setCondition(conditions, { type: 'Queued', status: 'False', reason: 'Admitted', message: '' }, now);
  }
  conditions = setCondition(conditions, { type: 'Started', status: 'True', reason: 'Claimed', message: '' }, now);
  return { ...withConditions(run.status, conditions), claim };
}

/** The terminal status; never called for a run that is terminal already (the CRD refuses it as well). */
export function finishedStatus(run: AgentRun, outcome: RunOutcome, acceptedAt: string, now: string): RunStatus {
  const conditions = setCondition(
    run.status?.conditions,
    { type: 'Finished', status: 'True', reason: outcome.reason, message: outcome.message },
    now,
  );
  return {
    ...withConditions(run.status, conditions),
    finishedAt: now,
    duration: formatDuration(Date.parse(now) - Date.parse(acceptedAt)),
  };
}

/** `850ms`, `12.3s`, `4m10s`, `2h05m`: short and readable for kubectl. */
export function formatDuration(ms: number): string {
  const clamped = Math.max(0, Math.round(ms));
  if (clamped < 1000) return `${clamped}ms`;
  if (clamped < 60_000) return `${(clamped / 1000).toFixed(1)}s`;
  const totalSeconds = Math.floor(clamped / 1000);
  const minutes = Math.floor(totalSeconds / 60);
  if (minutes < 60) return `${minutes}m${String(totalSeconds % 60).padStart(2, '0')}s`;
  return `${Math.floor(minutes / 60)}h${String(minutes % 60).padStart(2, '0')}m`;
}
