/** A run as the queue of admission sees it. */
import { acceptedAt, boxOfNamespace } from '../../../api/names.js';
import { saysVolumeInTheWay } from '../../../kube/kubernetes-messages.js';
import type { ControllerJob } from '../../../projections/job.js';
import { BY_RUN } from '../../../projections/pod.js';
import type { ControllerPod } from '../../../projections/pod.js';
import { awaitsSession, sessionKeyOf } from '../../../run/session/key.js';
import { isClaimed, isTerminal, isWaitedFor } from '../../../run/status.js';
import { claimNameOf } from '../../workspace-volume/plan.js';
import type { RunCaches } from '../dependencies.js';
import type { QueuedRun } from './run-queue.js';

/** Undefined when the run neither waits nor works. */
export function queuedRunOf(caches: RunCaches, key: string): QueuedRun | undefined {
  const run = caches.runs.get(key);
  if (run === undefined || isTerminal(run)) return undefined;
  const uid = run.metadata.uid ?? '';
  const known = caches.jobs.get(key);
  const job = known?.ownerUid === uid ? known : undefined;
  const pods = caches.pods.byIndex(BY_RUN, key);
  // A pod outlives its Job: until it is gone it takes up a place, and no second one may start beside it.
  const working = job !== undefined || isClaimed(run) || pods.length > 0;
  const leaves = run.metadata.deletionTimestamp !== undefined || run.spec.cancelRequested === true;
  // Its session decides whether it has to wait for another run: admission finds out first.
  if (!working && (leaves || awaitsSession(run))) return undefined;
  return {
    key,
    uid,
    box: boxOfNamespace(run.metadata.namespace ?? '') ?? '',
    agent: run.spec.agent,
    session: sessionKeyOf(run),
    acceptedAt: Date.parse(acceptedAt(run)),
    working,
    placing: working && !isClaimed(run) && isPlacing(caches, job, pods),
    ...(isWaitedFor(run) ? { exempt: true } : {}),
  };
}

/** Whether its pod may stand in the line for a node, before pods of other Boxes. Kueue and volumes have lines of their own. */
function isPlacing(
  { volumeClaims }: RunCaches,
  job: ControllerJob | undefined,
  pods: readonly ControllerPod[],
): boolean {
  if (pods.length === 0) return job !== undefined && !job.suspended && !job.deleting && job.ended === undefined;
  return pods.some((pod) => {
    if (pod.phase !== 'Pending' || pod.node !== undefined || pod.scheduledAt !== undefined) return false;
    if (pod.deletionAt !== undefined) return false;
    if (pod.unschedulable !== undefined) return !saysVolumeInTheWay(pod.unschedulable);
    return volumeClaims.get(`${pod.namespace}/${claimNameOf(pod.agent)}`)?.phase !== 'Pending';
  });
}
