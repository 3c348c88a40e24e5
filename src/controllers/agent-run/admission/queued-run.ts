/** A run as the queue of admission sees it. */
import { acceptedAt, boxOfNamespace } from '../../../api/names.js';
import { BY_RUN } from '../../../projections/pod.js';
import { sessionKeyOf } from '../../../run/session/key.js';
import { isClaimed, isTerminal } from '../../../run/status.js';
import type { RunCaches } from '../dependencies.js';
import type { QueuedRun } from './run-queue.js';

/** Undefined when the run neither waits nor works. */
export function queuedRunOf(caches: RunCaches, key: string): QueuedRun | undefined {
  const run = caches.runs.get(key);
  if (run === undefined || isTerminal(run)) return undefined;
  const uid = run.metadata.uid ?? '';
  const hasJob = caches.jobs.get(key)?.ownerUid === uid;
  // A pod outlives its Job: until it is gone it takes up a place, and no second one may start beside it.
  const working = hasJob || isClaimed(run) || caches.pods.byIndex(BY_RUN, key).length > 0;
  const leaves = run.metadata.deletionTimestamp !== undefined || run.spec.cancelRequested === true;
  if (!working && leaves) return undefined;
  return {
    key,
    uid,
    box: boxOfNamespace(run.metadata.namespace ?? '') ?? '',
    agent: run.spec.agent,
    session: sessionKeyOf(run),
    acceptedAt: Date.parse(acceptedAt(run)),
    working,
    ...(run.spec.parent?.waits === true ? { exempt: true } : {}),
  };
}
