/** Creates the Job of an admitted run. "Already exists" with our owner UID is success. */
import { Jobs } from '../../../kube/core-types.js';
import { isAlreadyExists } from '../../../kube/errors.js';
import { ownedBy } from '../../../kube/owner-references.js';
import { describeExhausted } from '../../budget/exhausted-budgets.js';
import { mustWait } from '../../workspace-volume/plan.js';
import type { RunDependencies } from '../dependencies.js';
import { hostUsersOf } from './host-users.js';
import { buildJob } from './job.js';
import { refusalOf } from './job-refusal.js';
import type { JobRefusal } from './job-refusal.js';
import type { RunState } from '../run-state.js';
import { sessionKeyOf } from '../../../run/session/key.js';
import { previousRunOf } from '../../../run/session/order.js';
import { isWaitedFor } from '../../../run/status.js';
import { BY_SESSION } from '../../../projections/agent-run.js';

export type CreateResult =
  | { result: 'created' }
  /** The name is taken by the Job of a deleted run of the same name, which the garbage collector will remove. */
  | { result: 'other-job' }
  /** Not until a budget has something left. */
  | { result: 'no-budget'; message: string }
  | JobRefusal;

/** Rejects for what a retry may cure: no answer, missing rights, an installation that is not set up yet. */
export async function createJob(
  deps: Pick<RunDependencies, 'api' | 'caches' | 'jobSettings' | 'budgets'>,
  { run, box, uid, volume }: RunState,
  signal: AbortSignal,
): Promise<CreateResult> {
  if (box === undefined) return { result: 'refused', reason: 'BoxNotReady' };
  if (volume === undefined || mustWait(volume)) return { result: 'refused', reason: 'WorkspaceNotReady' };
  const exhausted = isWaitedFor(run) ? undefined : deps.budgets?.exhausted.expectRoom(run);
  if (exhausted !== undefined) return { result: 'no-budget', message: describeExhausted(exhausted) };
  const settings = await deps.jobSettings(signal);
  const previousRun = previousRunOf(run, deps.caches.runs.byIndex(BY_SESSION, sessionKeyOf(run)))?.metadata.name;
  const grant = deps.budgets?.admit(run);
  const claimName = volume.use === 'claim' ? volume.claimName : undefined;
  const hostUsers = hostUsersOf(box.spec, deps.caches.nodes.values());
  const job = buildJob({ run, box, settings, grant, claimName, hostUsers, previousRun });
  try {
    await deps.api.create(Jobs, job, { signal });
    return { result: 'created' };
  } catch (error) {
    if (!isAlreadyExists(error)) return refusalOf(error);
    const ref = { namespace: job.metadata.namespace ?? '', name: job.metadata.name };
    const existing = await deps.api.get(Jobs, ref, { signal });
    return { result: ownedBy(existing, uid) ? 'created' : 'other-job' };
  }
}
