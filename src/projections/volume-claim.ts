/** The projection of PersistentVolumeClaims: ours only, those of the persistent workspaces. */
import { LABEL_AGENT, LABEL_MANAGED_BY, MANAGED_BY } from '../api/labels.js';
import { PersistentVolumeClaims } from '../kube/core-types.js';
import type { PersistentVolumeClaim } from '../kube/core-types.js';
import { controllerOwner } from '../kube/owner-references.js';
import type { InformerOptions } from '../kube/types.js';
import { locationOf } from './meta.js';
import type { Location } from './meta.js';

/** The claim of an agent's workspace. */
export interface VolumeClaimProjection extends Location {
  /** Name of its agent, from the label. */
  agent: string;
  /** UID of the Agent that owns it; undefined when nobody does. */
  ownerUid: string | undefined;
  deleting: boolean;
  phase: 'Pending' | 'Bound' | 'Lost';
}

export function projectVolumeClaim(claim: PersistentVolumeClaim): VolumeClaimProjection {
  const { labels, deletionTimestamp } = claim.metadata;
  return {
    ...locationOf(claim.metadata),
    agent: labels?.[LABEL_AGENT] ?? '',
    ownerUid: controllerOwner(claim)?.uid,
    deleting: deletionTimestamp !== undefined,
    phase: claim.status?.phase ?? 'Pending',
  };
}

export const volumeClaimInformer: InformerOptions<PersistentVolumeClaim, VolumeClaimProjection> = {
  type: PersistentVolumeClaims,
  labelSelector: `${LABEL_MANAGED_BY}=${MANAGED_BY}`,
  project: projectVolumeClaim,
};
