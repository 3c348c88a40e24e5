/**
 * Which runs the control plane takes further by itself, when and under which name: `spec.retries` of an agent. Only runs that
 * ended in an error in which nothing was under way: no pod had claimed them, or the runner said so itself. Of a pod that was
 * lost without a word nobody can tell. Pure. See docs/agents.md#retries.
 */
import { createHash } from 'node:crypto';
import type { AgentRun } from '../api/v1alpha1/agent-run.js';
import { ulid } from '../api/ulid.js';
import type { RunReason } from './reasons.js';
import { isClaimed, type RunStatus } from './status.js';

/** Doubled with each attempt. */
const FIRST_WAIT_MS = 30_000;
/** An error of long ago, as after a restore, is history. */
const TOO_LATE_MS = 3_600_000;

/** What claimed runs may have ended with: faults from outside, not what the agent, a person or a budget did. */
const AT_REST: ReadonlySet<string> = new Set<RunReason>([
  'ModelError',
  'Interrupted',
  'Evicted',
  'NodeLost',
  'RunnerError',
]);
/** What runs may have ended with that no pod had claimed. */
const NOT_BEGUN: ReadonlySet<string> = new Set<RunReason>([
  'ImagePullFailed',
  'ContainerCreateFailed',
  'ClaimTimeout',
  'Evicted',
  'NodeLost',
  'RunnerFailed',
  'RunnerError',
  'Interrupted',
]);

export type Retryable = Pick<AgentRun, 'metadata'> & {
  spec: Pick<AgentRun['spec'], 'agent' | 'trigger' | 'parent' | 'steer' | 'recording' | 'retryOf' | 'cancelRequested'>;
  status?: Partial<
    Pick<RunStatus, 'phase' | 'reason' | 'claim' | 'usageFinal' | 'atRest' | 'retriedBy' | 'finishedAt'>
  >;
};

export interface Retry {
  /** The same for whoever computes it, so that there is never a second one. */
  name: string;
  /** 1 for the first one. */
  attempt: number;
  /** When it is due, in ms of the epoch. */
  at: number;
}

/** The run after this one; undefined when there is none, or when it would come too late. */
export function retryOf(run: Retryable, retries: number, now: number): Retry | undefined {
  const { metadata, spec, status = {} } = run;
  const attempt = (spec.retryOf?.attempt ?? 0) + 1;
  if (attempt > retries || status.retriedBy !== undefined || metadata.deletionTimestamp !== undefined) return undefined;
  if (!isFault(run) || !isOwn(run) || spec.cancelRequested === true) return undefined;
  const finishedAt = Date.parse(status.finishedAt ?? '');
  const at = finishedAt + FIRST_WAIT_MS * 2 ** (attempt - 1);
  // Also false without a time.
  if (!(now < at + TOO_LATE_MS)) return undefined;
  const digest = createHash('sha256')
    .update(`boxwright-retry-v1 ${metadata.uid ?? ''}`)
    .digest();
  return { name: `${spec.agent}-${ulid(finishedAt, digest.subarray(0, 10))}`, attempt, at };
}

function isFault({ status = {} }: Retryable): boolean {
  if (status.phase !== 'error' || status.usageFinal !== true) return false;
  const { reason = '' } = status;
  return isClaimed({ status } as Pick<AgentRun, 'status'>)
    ? status.atRest === true && AT_REST.has(reason)
    : NOT_BEGUN.has(reason);
}

/** Whether nobody else waits for this very run: the run that called it, an AgentEval, the run that works. */
function isOwn({ spec: { parent, steer, trigger, recording } }: Retryable): boolean {
  return parent === undefined && steer !== true && trigger?.origin !== 'eval' && recording === undefined;
}
