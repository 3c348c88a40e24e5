/**
 * Namespaces of Boxes and Workspaces: created by us with the owner's UID. A namespace that was
 * there before is taken over only when an administrator annotated it `boxwright.dev/adopt=<owner>` and it holds no
 * workloads; such a namespace is never deleted by us and carries no owner reference, so nobody else deletes it either.
 */
import { ANNOTATION_ADOPT, LABEL_MANAGED_BY, MANAGED_BY } from '../../api/labels.js';
import type { ObjectMeta } from '../../api/meta.js';
import { Namespaces } from '../../kube/core-types.js';
import type { Namespace } from '../../kube/core-types.js';
import { isAlreadyExists, orUndefined } from '../../kube/errors.js';
import { ownedBy } from '../../kube/owner-references.js';
import type { Cache, KubeApi } from '../../kube/types.js';
import { findWorkloads } from './workloads.js';

/** On an adopted namespace: UID of the Box or Workspace that took it over, so that workloads are looked for only once. */
export const ANNOTATION_ADOPTED_BY = 'boxwright.dev/adopted-by-uid';

export interface NamespaceOwner {
  name: string;
  uid: string;
  /** Its name stands in this label of the namespace. */
  label: string;
}

/** What a namespace is to its Box or Workspace. */
export type NamespaceClaim = 'owned' | 'restored' | 'adopted' | 'adoptable' | 'foreign';

export function namespaceClaim(namespace: Pick<Namespace, 'metadata'>, owner: NamespaceOwner): NamespaceClaim {
  if (ownedBy(namespace, owner.uid)) return 'owned';
  const annotations = namespace.metadata.annotations ?? {};
  if (annotations[ANNOTATION_ADOPT] === undefined && isRestored(namespace, owner)) return 'restored';
  if (annotations[ANNOTATION_ADOPT] !== owner.name) return 'foreign';
  return annotations[ANNOTATION_ADOPTED_BY] === owner.uid ? 'adopted' : 'adoptable';
}

/**
 * Of a backup: our labels are there, which only we and administrators can write, and its owner stayed behind. It is ours again
 * with the reference to the new one.
 */
function isRestored({ metadata }: Pick<Namespace, 'metadata'>, { label, name }: NamespaceOwner): boolean {
  const { labels = {}, ownerReferences = [] } = metadata;
  return ownerReferences.length === 0 && labels[LABEL_MANAGED_BY] === MANAGED_BY && labels[label] === name;
}

/** Why a namespace cannot be used, as a condition; undefined when it can. */
export interface NamespaceRefusal {
  reason: 'NamespaceExists' | 'NamespaceTerminating';
  message: string;
}

export interface NamespaceDependencies {
  api: Pick<KubeApi, 'get' | 'list' | 'create' | 'patch'>;
  cache: Pick<Cache<Namespace>, 'get'>;
}

/** The namespace as its owner wants it: name, labels and (for one that we create) the owner reference. */
export interface DesiredNamespace {
  owner: NamespaceOwner;
  namespace: Namespace;
}

/** Creates, adopts or repairs the namespace; no write when it is right. Returns why it cannot be used, if so. */
export async function ensureNamespace(
  deps: NamespaceDependencies,
  desired: DesiredNamespace,
  signal: AbortSignal,
): Promise<NamespaceRefusal | undefined> {
  const { name } = desired.namespace.metadata;
  const actual = deps.cache.get(name) ?? (await readOrCreate(deps.api, desired.namespace, signal));
  if (actual.metadata.deletionTimestamp !== undefined) {
    return {
      reason: 'NamespaceTerminating',
      message: `namespace ${name} is being deleted; it is made again after that`,
    };
  }
  const claim = namespaceClaim(actual, desired.owner);
  if (claim === 'foreign') return { reason: 'NamespaceExists', message: foreignMessage(name, desired.owner.name) };
  if (claim === 'adoptable') {
    const found = await findWorkloads(deps.api, name, signal);
    if (found !== undefined) {
      const message = `namespace ${name} cannot be adopted because it holds ${found}; remove its workloads`;
      return { reason: 'NamespaceExists', message };
    }
  }
  await repairMetadata(deps.api, actual, desired, signal);
  return undefined;
}

function foreignMessage(namespace: string, owner: string): string {
  return (
    `namespace ${namespace} exists and was not made for this object; delete it, ` +
    `or let it be adopted: kubectl annotate namespace ${namespace} ${ANNOTATION_ADOPT}=${owner}`
  );
}

async function readOrCreate(
  api: NamespaceDependencies['api'],
  namespace: Namespace,
  signal: AbortSignal,
): Promise<Namespace> {
  const existing = await readNamespace(api, namespace.metadata.name, signal);
  if (existing !== undefined) return existing;
  try {
    return await api.create(Namespaces, namespace, { signal });
  } catch (error) {
    if (!isAlreadyExists(error)) throw error;
    return await api.get(Namespaces, { name: namespace.metadata.name }, { signal });
  }
}

/** A live read; undefined when there is none. */
export async function readNamespace(
  api: Pick<KubeApi, 'get'>,
  name: string,
  signal: AbortSignal,
): Promise<Namespace | undefined> {
  return await orUndefined(api.get(Namespaces, { name }, { signal }));
}

async function repairMetadata(
  api: NamespaceDependencies['api'],
  actual: Namespace,
  desired: DesiredNamespace,
  signal: AbortSignal,
): Promise<void> {
  const patch = metadataPatch(actual.metadata, desired);
  if (patch === undefined) return;
  const body = { metadata: { resourceVersion: actual.metadata.resourceVersion, ...patch } };
  await api.patch(Namespaces, { name: actual.metadata.name }, body, { type: 'merge', signal });
}

/** Labels that are missing or wrong, and our mark on a namespace that is being adopted. */
export function metadataPatch(
  actual: ObjectMeta,
  desired: DesiredNamespace,
): Pick<ObjectMeta, 'labels' | 'annotations' | 'ownerReferences'> | undefined {
  const labels = Object.entries(desired.namespace.metadata.labels ?? {}).filter(
    ([key, value]) => actual.labels?.[key] !== value,
  );
  const claim = namespaceClaim({ metadata: actual }, desired.owner);
  const adopt = claim === 'adoptable';
  const { ownerReferences = [] } = desired.namespace.metadata;
  if (labels.length === 0 && !adopt && claim !== 'restored') return undefined;
  return {
    ...(labels.length === 0 ? {} : { labels: Object.fromEntries(labels) }),
    ...(claim === 'restored' ? { ownerReferences } : {}),
    ...(adopt ? { annotations: { [ANNOTATION_ADOPTED_BY]: desired.owner.uid } } : {}),
  };
}

/**
 * Removes the namespace of an owner that is being deleted. True when nothing of ours is left to wait for: it is gone,
 * or it was never ours, or it was adopted and keeps living.
 */
export async function removeNamespace(
  api: Pick<KubeApi, 'get' | 'delete'>,
  name: string,
  owner: NamespaceOwner,
  signal: AbortSignal,
): Promise<boolean> {
  const namespace = await readNamespace(api, name, signal);
  if (namespace === undefined || namespaceClaim(namespace, owner) !== 'owned') return true;
  if (namespace.metadata.deletionTimestamp !== undefined) return false;
  const precondition = namespace.metadata.uid === undefined ? {} : { uid: namespace.metadata.uid };
  await api.delete(Namespaces, { name }, { ...precondition, propagationPolicy: 'Background', signal });
  return false;
}
