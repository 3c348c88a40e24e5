/** Creates the Job of an admitted run. "Already exists" with our owner UID is success (DESIGN principle 3). */
import type { QueueReason } from '../../api/reasons.js';
import { Jobs } from '../../kube/core-types.js';
import {
  KubeApiError,
  KubeConnectionError,
  isAlreadyExists,
  isBadRequest,
  isForbidden,
  isInvalid,
  isNotFound,
} from '../../kube/errors.js';
import { ownedBy } from '../../kube/owner-references.js';
import { isRetrySoon, isUnavailable } from '../../runtime/errors.js';
import { describeEmpty } from '../budget/empty-budgets.js';
import { mustWait } from '../workspace-volume/plan.js';
import type { RunDependencies } from './dependencies.js';
import { hostUsersOf } from './host-users.js';
import { buildJob } from './job.js';
import type { RunState } from './run-state.js';
import { BY_SESSION, sessionKeyOf } from './views.js';
import type { RunView } from './views.js';

export type CreateResult =
  | { result: 'created' }
  /** A Job of another run has the name: one of a deleted namesake, which the garbage collector removes. */
  | { result: 'other-job' }
  /** Not now; the run waits. `message` takes the place of what the reason says in general. */
  | {
      result: 'refused';
      reason: Extract<QueueReason, 'NoCapacity' | 'BoxNotReady' | 'WorkspaceNotReady' | 'JobRefused' | 'JobNotCreated'>;
      message?: string;
    }
  /** Not before a budget has something left. */
  | { result: 'no-budget'; message: string }
  /** Never. */
  | { result: 'invalid'; message: string };

/** Rejects for what repeating soon can repair: no answer, missing rights, an installation that is not set up yet. */
export async function createJob(
  deps: Pick<RunDependencies, 'api' | 'caches' | 'jobSettings' | 'budgets'>,
  { run, box, uid, volume }: RunState,
  signal: AbortSignal,
): Promise<CreateResult> {
  if (box === undefined) return { result: 'refused', reason: 'BoxNotReady' };
  if (volume === undefined || mustWait(volume)) return { result: 'refused', reason: 'WorkspaceNotReady' };
  const empty = run.spec.parent?.waits === true ? undefined : deps.budgets?.empty.expectRoom(run);
  if (empty !== undefined) return { result: 'no-budget', message: describeEmpty(empty) };
  const settings = await deps.jobSettings(signal);
  const previousRun = previousRunOf(run, deps.caches.runs.byIndex(BY_SESSION, sessionKeyOf(run)));
  const slice = deps.budgets?.admit(run);
  const claimName = volume.use === 'claim' ? volume.claimName : undefined;
  const hostUsers = hostUsersOf(box.spec, deps.caches.nodes.values());
  const job = buildJob({ run, box, settings, slice, claimName, hostUsers, previousRun });
  try {
    await deps.api.create(Jobs, job, { signal });
    return { result: 'created' };
  } catch (error) {
    if (!isAlreadyExists(error)) return refusal(error);
    const ref = { namespace: job.metadata.namespace ?? '', name: job.metadata.name };
    const existing = await deps.api.get(Jobs, ref, { signal });
    return { result: ownedBy(existing, uid) ? 'created' : 'other-job' };
  }
}

function refusal(error: unknown): CreateResult {
  const message = `Kubernetes refused the Job: ${(error as Error).message}`;
  if (isDenied(error)) return { result: 'refused', reason: 'JobRefused', message };
  if (isInvalid(error)) return { result: 'invalid', message };
  if (isNotFound(error) || isTerminating(error)) return { result: 'refused', reason: 'BoxNotReady' };
  if (isForbidden(error) && (error as Error).message.includes('exceeded quota')) {
    return { result: 'refused', reason: 'NoCapacity' };
  }
  // As admission plugins of the API server answer: a person has to mend something.
  if (isBadRequest(error) || (isForbidden(error) && !comesBack(error as Error)))
    return { result: 'refused', reason: 'JobRefused', message };
  throw error;
}

/**
 * By an admission policy or webhook, which chooses the code: 422 is what a policy answers that names no reason, 500 what most
 * webhooks answer for a failure of their own.
 */
function isDenied(error: unknown): boolean {
  return error instanceof KubeApiError && /\bdenied (the )?request\b/.test(error.message);
}

/**
 * Why there is no Job, for an error of createJob that may last: undefined for an API server that is away, of which the
 * run could not even say so, and for a write that was based on an older version.
 */
export function lastingFailure(error: unknown): string | undefined {
  if (!(error instanceof Error) || isRetrySoon(error)) return undefined;
  if (isUnavailable(error) && !isInternal(error) && !isUnanswered(error)) return undefined;
  return `The Job cannot be created: ${error.message}`;
}

/** No answer in time, as from a webhook that may take as long: the Job may come all the same. */
export function isUnanswered(error: unknown): boolean {
  return error instanceof KubeConnectionError && error.failure === 'timeout';
}

/**
 * 500 from the admission of the Job while all else works: `Internal error occurred: failed calling webhook "…"`, or the patch
 * of a webhook does not fit.
 */
function isInternal(error: Error): boolean {
  return error instanceof KubeApiError && error.message.includes('Internal error occurred: ');
}

/**
 * 403 of an API server that has not read all that it needs after its start: rights (`User "…" cannot create resource "jobs" in
 * API group "batch" in the namespace "…"`), or what an admission plugin works with.
 */
function comesBack({ message }: Error): boolean {
  return message.includes('cannot create resource') || message.includes('not yet ready to handle request');
}

function isTerminating(error: unknown): boolean {
  return (
    error instanceof KubeApiError &&
    error.details?.causes?.some(({ reason }) => reason === 'NamespaceTerminating') === true
  );
}

/** The run of the session that was claimed last: its transcript goes on in this one. */
export function previousRunOf(run: RunView, session: readonly RunView[]): string | undefined {
  let latest: { name: string; at: number } | undefined;
  for (const other of session) {
    const at = Date.parse(other.status?.claim?.at ?? '');
    if (other.metadata.name === run.metadata.name || Number.isNaN(at)) continue;
    if (latest === undefined || at > latest.at) latest = { name: other.metadata.name, at };
  }
  return latest?.name;
}
