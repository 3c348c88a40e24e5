/**
 * How a run ended, and every text with a cause and a next step: composed here and nowhere else. Pure. Who writes an outcome:
 * src/gateway/runs/finishes.ts when the runner reports it, is refused or falls silent, and the run controller
 * (src/controllers/agent-run/run-writer.ts) when no report can come; the first one wins (transition.ts).
 */
import { KEPT_REASONS, QUEUE_REASONS, RUN_REASONS } from './reasons.js';
import type { QueueReason, RunReason } from './reasons.js';
import type { RunPhase } from '../api/v1alpha1/agent-run.js';

/** How a run ended. */
export interface RunOutcome {
  reason: RunReason;
  message: string;
}

/** An outcome with the last message of the agent, where it is known. */
export interface FoundOutcome extends RunOutcome {
  output?: string;
  outputTruncated?: boolean;
}

/** The spec's state of a run that ended for this reason (spec 3). */
export function phaseOf(reason: string): Exclude<RunPhase, 'running'> {
  if (reason === 'Completed' || reason === 'StepLimitReached' || reason === 'Delivered') return 'done';
  return reason === 'Cancelled' ? 'cancelled' : 'error';
}

/** What `nextStep` says where nothing is to be done. */
const NOTHING = 'None.';

/** An outcome for a person: what happened, by default the cause of the reason, then its next step. */
export function outcomeOf(reason: RunReason, what: string = RUN_REASONS[reason].cause): RunOutcome {
  const { nextStep } = RUN_REASONS[reason];
  return { reason, message: nextStep === NOTHING ? what : `${what} ${nextStep}` };
}

/** What a run that waits says in general. */
export function waitText(reason: QueueReason): string {
  const { cause, nextStep } = QUEUE_REASONS[reason];
  return `${cause} Next: ${nextStep}`;
}

/** What a run says that had its Job and waits again. */
export function returnText(reason: QueueReason, what: string): string {
  const { cause, nextStep } = QUEUE_REASONS[reason];
  return `${cause} ${what} ${nextStep}`;
}

/** Why a deleted run or agent is still there. */
export function keptText(reason: keyof typeof KEPT_REASONS): string {
  const { cause, nextStep } = KEPT_REASONS[reason];
  return `${cause} ${nextStep}`;
}

/** Text of somebody else, as of the kubelet, as one sentence. */
export function sentence(text: string): string {
  const clean = text.replace(/\s+/g, ' ').trim();
  return clean.endsWith('.') ? clean : `${clean}.`;
}
