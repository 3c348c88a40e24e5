/**
 * The Kubernetes object shapes that the whole code base speaks: plain JSON as it is on the wire.
 * No client library type leaks out of src/kube.
 */

/** A reference from a child to the object that owns it. */
export interface OwnerReference {
  apiVersion: string;
  kind: string;
  name: string;
  uid: string;
  controller?: boolean;
  blockOwnerDeletion?: boolean;
}

/** Kubernetes ObjectMeta: only the fields that we read or write; times are RFC 3339 strings. */
export interface ObjectMeta {
  name: string;
  namespace?: string;
  uid?: string;
  resourceVersion?: string;
  generation?: number;
  creationTimestamp?: string;
  deletionTimestamp?: string;
  labels?: Record<string, string>;
  annotations?: Record<string, string>;
  finalizers?: string[];
  ownerReferences?: OwnerReference[];
}

/** Any Kubernetes object. */
export interface KubeObject {
  apiVersion: string;
  kind: string;
  metadata: ObjectMeta;
}

/** A custom resource of ours: `status` is absent until a controller wrote it. */
export interface Resource<Spec, Status> extends KubeObject {
  spec: Spec;
  status?: Status;
}

/**
 * Names a kind on the API server. `T` is a phantom: it ties the object type to the kind, so that
 * `client.get(AgentRuns, …)` returns an AgentRun.
 */
export interface ResourceType<T extends KubeObject = KubeObject> {
  /** API group; empty for the core group. */
  readonly group: string;
  readonly version: string;
  readonly kind: string;
  readonly plural: string;
  readonly namespaced: boolean;
  readonly _object?: T;
}

/** `namespace/name`, or `name` for a cluster-scoped object: the key of queues and caches. */
export function objectKey(meta: Pick<ObjectMeta, 'name' | 'namespace'>): string {
  return meta.namespace === undefined ? meta.name : `${meta.namespace}/${meta.name}`;
}

/** The inverse of {@link objectKey}. */
export function parseObjectKey(key: string): { namespace?: string; name: string } {
  const slash = key.indexOf('/');
  return slash === -1 ? { name: key } : { namespace: key.slice(0, slash), name: key.slice(slash + 1) };
}
