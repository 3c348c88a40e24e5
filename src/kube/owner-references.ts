/** Owner references as pure functions. */
import type { KubeObject, OwnerReference, ResourceType } from '../api/meta.js';

/** The reference with `controller: true`, if any: at most one by the rules of Kubernetes. */
export function controllerOwner(object: Pick<KubeObject, 'metadata'>): OwnerReference | undefined {
  return object.metadata.ownerReferences?.find((reference) => reference.controller === true);
}

/** Whether the object's controller is the one with that UID: a name alone may belong to a successor. */
export function ownedBy(object: Pick<KubeObject, 'metadata'>, uid: string): boolean {
  return controllerOwner(object)?.uid === uid;
}

/** The `apiVersion` of a kind: `v1` for the core group, `group/version` else. */
export function apiVersionOf(type: Pick<ResourceType, 'group' | 'version'>): string {
  return type.group === '' ? type.version : `${type.group}/${type.version}`;
}

/** A reference that makes `owner` the controller of a child; the owner must have been read from the API server. */
export function controllerReference(type: ResourceType, owner: Pick<KubeObject, 'metadata'>): OwnerReference {
  const { name, uid } = owner.metadata;
  if (uid === undefined) throw new Error(`${type.kind} ${name} has no uid: read it before referring to it`);
  return { apiVersion: apiVersionOf(type), kind: type.kind, name, uid, controller: true };
}
