/** What projections of every kind have in common. A process has memory for all objects of a kind, so it drops what it never reads. */
import type { KubeObject, ObjectMeta } from '../api/meta.js';

/** An object that is being deleted stays in the cache, and counts as gone for every tool and URL. */
export interface Identity {
  name: string;
  uid: string;
  deleting: boolean;
}

export function identityOf(meta: ObjectMeta): Identity {
  return { name: meta.name, uid: meta.uid ?? '', deleting: meta.deletionTimestamp !== undefined };
}

export interface Location {
  namespace: string;
  name: string;
  uid: string;
}

export function locationOf(meta: ObjectMeta): Location {
  return { namespace: meta.namespace ?? '', name: meta.name, uid: meta.uid ?? '' };
}

/** Metadata without managedFields, annotations, labels, finalizers and owners. */
export function slimMeta(meta: ObjectMeta): ObjectMeta {
  const { name, namespace, uid, resourceVersion, creationTimestamp, deletionTimestamp } = meta;
  return {
    name,
    ...(namespace === undefined ? {} : { namespace }),
    ...(uid === undefined ? {} : { uid }),
    ...(resourceVersion === undefined ? {} : { resourceVersion }),
    ...(creationTimestamp === undefined ? {} : { creationTimestamp }),
    ...(deletionTimestamp === undefined ? {} : { deletionTimestamp }),
  };
}

/** Server-side bookkeeping that nobody here reads and that doubles the size of an object. */
export function withoutManagedFields<T extends KubeObject>(object: T): T {
  const { managedFields: _dropped, ...metadata } = object.metadata as ObjectMeta & { managedFields?: unknown };
  return { ...object, metadata };
}
