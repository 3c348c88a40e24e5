/** What the status of a run says. What changes it, and how: transition.ts. */
import type { AgentRun } from '../api/v1alpha1/agent-run.js';

export type RunStatus = NonNullable<AgentRun['status']>;

/** Whether the run has ended; its outcome never changes again. */
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

/** Whether what the run used is known for good. */
export function isSettled(run: Pick<AgentRun, 'status'>): boolean {
  return isTerminal(run) && run.status?.usageFinal === true;
}

/** Whether the run that called its agent waits for it: it needs no free place then, so that the two cannot block each other. */
export function isWaitedFor(run: {
  spec: Pick<AgentRun['spec'], 'parent'>;
  status?: Pick<RunStatus, 'awaited'>;
}): boolean {
  return run.spec.parent !== undefined && (run.spec.parent.waits || run.status?.awaited === true);
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

/** Whether somebody wants the run to stop: it was cancelled or deleted. */
export function isCancelRequested(run: Pick<AgentRun, 'spec' | 'metadata'>): boolean {
  return run.spec.cancelRequested === true || run.metadata.deletionTimestamp !== undefined;
}
