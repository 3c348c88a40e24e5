/** The step of an Agent that gives it its volume, and reports the result in condition WorkspacePersistent. */
import { isDeepStrictEqual } from 'node:util';
import { objectKey } from '../../api/meta.js';
import { boxNamespace, boxOfNamespace } from '../../api/names.js';
import type { Box } from '../../api/v1alpha1/box.js';
import type { Cache, KubeApi } from '../../kube/types.js';
import type { Clock } from '../../runtime/clock.js';
import { CONTINUE, continueAndRequeueAfter } from '../../runtime/steps.js';
import type { StepResult } from '../../runtime/steps.js';
import { all } from '../common/controller-part.js';
import { showCondition } from '../common/ready.js';
import { desiredClaim, makeClaim } from '../workspace-volume/claim.js';
import { claimNameOf, volumeOf } from '../workspace-volume/plan.js';
import type { VolumePlan } from '../workspace-volume/plan.js';
import type { ControllerAgent } from '../../projections/agent.js';
import { BY_NAMESPACE } from '../../projections/indexes.js';
import type { StorageClassProjection } from '../../projections/storage-class.js';
import { projectVolumeClaim } from '../../projections/volume-claim.js';
import type { VolumeClaimProjection } from '../../projections/volume-claim.js';

export const WORKSPACE_PERSISTENT = 'WorkspacePersistent';

/** No event tells that a quota was raised or that somebody else's claim is gone. */
const REFUSED_RECHECK_MS = 30_000;
const QUOTA_COUNTED_MS = 1_000;

export interface WorkspaceDependencies {
  api: Pick<KubeApi, 'create' | 'get'>;
  clock: Clock;
  caches: {
    agents: Cache<ControllerAgent>;
    boxes: Cache<Box>;
    volumeClaims: Cache<VolumeClaimProjection>;
    storageClasses: Cache<StorageClassProjection>;
  };
}

/** Calls back with the agents whose volume an event may change. */
export function watchWorkspaces({ caches }: WorkspaceDependencies, enqueue: (key: string) => void): () => void {
  const enqueueAll = (agents: Iterable<ControllerAgent>) => {
    for (const { metadata } of agents) enqueue(objectKey(metadata));
  };
  return all([
    caches.volumeClaims.onChange(({ previous, current }) => {
      const claim = current ?? previous;
      if (claim !== undefined) enqueue(`${claim.namespace}/${claim.agent}`);
    }),
    caches.storageClasses.onChange(({ previous, current }) => {
      if (!isDeepStrictEqual(previous, current)) enqueueAll(caches.agents.values());
    }),
    caches.boxes.onChange(({ key, previous, current }) => {
      if (isDeepStrictEqual(previous?.spec.workspaceVolume, current?.spec.workspaceVolume)) return;
      enqueueAll(caches.agents.byIndex(BY_NAMESPACE, boxNamespace(key)));
    }),
  ]);
}

/** Makes the claim of an active agent when its Box wants one. An existing claim is kept, whatever happens to Box and slot. */
export async function ensureWorkspace(
  deps: WorkspaceDependencies,
  draft: ControllerAgent,
  signal: AbortSignal,
): Promise<StepResult> {
  const box = deps.caches.boxes.get(boxOfNamespace(draft.metadata.namespace ?? '') ?? '');
  if (box === undefined) return CONTINUE;
  const plan = volumeOf(deps.caches, draft, box);
  if (plan.use !== 'create' || draft.status?.active !== true) {
    showPlan(draft, plan, deps.clock);
    return CONTINUE;
  }
  const made = await makeClaim(deps.api, desiredClaim(draft, box, plan.storageClassName), signal);
  if (made.result === 'made') {
    showPlan(draft, volumeOf(deps.caches, draft, box, projectVolumeClaim(made.claim)), deps.clock);
    return CONTINUE;
  }
  if (made.result === 'not-yet') {
    showPlan(draft, plan, deps.clock);
    return continueAndRequeueAfter(QUOTA_COUNTED_MS);
  }
  showPlan(draft, made.result === 'taken' ? taken(draft) : refused(made.message), deps.clock);
  return continueAndRequeueAfter(REFUSED_RECHECK_MS);
}

type Shown = Pick<VolumePlan, 'reason' | 'message'> & { use?: VolumePlan['use'] };

function taken({ metadata }: ControllerAgent): Shown {
  const name = claimNameOf(metadata.name);
  const next = `delete it, or rename the agent; runs wait until then`;
  return { reason: 'VolumeForeign', message: `volume claim ${name} was not made for this agent: ${next}` };
}

function refused(message: string): Shown {
  const next =
    'raise spec.quota.volumes or spec.quota.storage of the Box when the quota is used up; runs wait until then';
  return { reason: 'VolumeRefused', message: `Kubernetes refused the volume claim (${message}): ${next}` };
}

function showPlan(draft: ControllerAgent, { use, reason, message }: Shown, clock: Clock): void {
  const status = use === 'claim' ? 'True' : 'False';
  showCondition(draft, { type: WORKSPACE_PERSISTENT, status, reason, message }, clock);
}
