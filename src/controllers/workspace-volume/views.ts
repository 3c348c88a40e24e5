/** What the controllers keep of volume claims and StorageClasses. */
import { LABEL_AGENT, LABEL_MANAGED_BY, MANAGED_BY } from '../../api/labels.js';
import { PersistentVolumeClaims, StorageClasses } from '../../kube/core-types.js';
import type { PersistentVolumeClaim, StorageClass } from '../../kube/core-types.js';
import { controllerOwner } from '../../kube/owner-references.js';
import type { InformerOptions } from '../../kube/types.js';

export interface ClaimView {
  uid: string;
  name: string;
  namespace: string;
  /** Name of its agent, from the label. */
  agent: string;
  /** UID of the Agent that owns it; undefined when nobody does. */
  ownerUid: string | undefined;
  deleting: boolean;
  phase: 'Pending' | 'Bound' | 'Lost';
}

export function projectClaim(claim: PersistentVolumeClaim): ClaimView {
  const { uid = '', name, namespace = '', labels, deletionTimestamp } = claim.metadata;
  return {
    uid,
    name,
    namespace,
    agent: labels?.[LABEL_AGENT] ?? '',
    ownerUid: controllerOwner(claim)?.uid,
    deleting: deletionTimestamp !== undefined,
    phase: claim.status?.phase ?? 'Pending',
  };
}

/** Ours only: those of the persistent workspaces. */
export const claimInformer: InformerOptions<PersistentVolumeClaim, ClaimView> = {
  type: PersistentVolumeClaims,
  labelSelector: `${LABEL_MANAGED_BY}=${MANAGED_BY}`,
  project: projectClaim,
};

export interface StorageClassView {
  name: string;
  isDefault: boolean;
  createdAt: number;
}

const ANNOTATION_DEFAULT_CLASS = 'storageclass.kubernetes.io/is-default-class';

export function projectStorageClass({ metadata }: StorageClass): StorageClassView {
  return {
    name: metadata.name,
    isDefault: metadata.annotations?.[ANNOTATION_DEFAULT_CLASS] === 'true',
    createdAt: Date.parse(metadata.creationTimestamp ?? ''),
  };
}

export const storageClassInformer: InformerOptions<StorageClass, StorageClassView> = {
  type: StorageClasses,
  project: projectStorageClass,
};
