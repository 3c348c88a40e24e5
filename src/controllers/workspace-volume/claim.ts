/** The volume claim of an agent: created with the Agent as its owner, and removed with it. */
import { LABEL_AGENT, LABEL_BOX, LABEL_MANAGED_BY, MANAGED_BY } from '../../api/labels.js';
import type { ObjectMeta } from '../../api/meta.js';
import { Agents } from '../../api/v1alpha1/agent.js';
import type { Box } from '../../api/v1alpha1/box.js';
import { PersistentVolumeClaims } from '../../kube/core-types.js';
import type { PersistentVolumeClaim } from '../../kube/core-types.js';
import { isAlreadyExists, isConflict, isForbidden, isInvalid, isNotFound } from '../../kube/errors.js';
import { saysQuotaNotCounted } from '../../kube/kubernetes-messages.js';
import { apiVersionOf, controllerReference, ownedBy } from '../../kube/owner-references.js';
import type { KubeApi } from '../../kube/types.js';
import { claimNameOf } from './plan.js';

/** The claim to create. One node at a time mounts it; the pods of an agent share that node. */
export function desiredClaim(
  agent: { metadata: ObjectMeta },
  box: Box,
  storageClassName: string,
): PersistentVolumeClaim {
  const { name, namespace = '' } = agent.metadata;
  return {
    apiVersion: apiVersionOf(PersistentVolumeClaims),
    kind: PersistentVolumeClaims.kind,
    metadata: {
      name: claimNameOf(name),
      namespace,
      labels: { [LABEL_MANAGED_BY]: MANAGED_BY, [LABEL_AGENT]: name, [LABEL_BOX]: box.metadata.name },
      ownerReferences: [controllerReference(Agents, agent)],
    },
    spec: {
      accessModes: ['ReadWriteOnce'],
      storageClassName,
      resources: { requests: { storage: box.spec.workspaceVolume.size } },
    },
  };
}

export type ClaimResult =
  | { result: 'made'; claim: PersistentVolumeClaim }
  /** An object of that name exists without our label. */
  | { result: 'taken' }
  /** Kubernetes has not counted the quota of a young namespace yet: try again in a moment. */
  | { result: 'not-yet' }
  /** Quota or policy refused it. */
  | { result: 'refused'; message: string };

/** Creates the claim; "already exists" with our owner UID is success. Rejects for what a retry can fix. */
export async function makeClaim(
  api: Pick<KubeApi, 'create' | 'get'>,
  claim: PersistentVolumeClaim,
  signal: AbortSignal,
): Promise<ClaimResult> {
  try {
    return { result: 'made', claim: await api.create(PersistentVolumeClaims, claim, { signal }) };
  } catch (error) {
    if (isForbidden(error) && saysQuotaNotCounted((error as Error).message)) return { result: 'not-yet' };
    if (isForbidden(error) || isInvalid(error)) return { result: 'refused', message: (error as Error).message };
    if (!isAlreadyExists(error)) throw error;
  }
  const { namespace = '', name, ownerReferences = [] } = claim.metadata;
  const existing = await api.get(PersistentVolumeClaims, { namespace, name }, { signal });
  return ownedBy(existing, ownerReferences[0]?.uid ?? '') ? { result: 'made', claim: existing } : { result: 'taken' };
}

/**
 * Removes the claim of an agent that is being deleted: looked up by its name, since one that was made a moment ago may not
 * be in a cache. A pod that still uses it delays its end and not that of the agent; one of another owner stays.
 */
export async function removeClaim(
  api: Pick<KubeApi, 'get' | 'delete'>,
  agent: { metadata: ObjectMeta },
  signal: AbortSignal,
): Promise<void> {
  const { namespace = '', uid = '' } = agent.metadata;
  const ref = { namespace, name: claimNameOf(agent.metadata.name) };
  try {
    const claim = await api.get(PersistentVolumeClaims, ref, { signal });
    if (!ownedBy(claim, uid) || claim.metadata.deletionTimestamp !== undefined) return;
    await api.delete(PersistentVolumeClaims, ref, { uid: claim.metadata.uid ?? '', signal });
  } catch (error) {
    if (!isNotFound(error) && !isConflict(error)) throw error;
  }
}
