/** Adding and releasing our finalizer; both carry the resourceVersion that was seen. */
import { FINALIZER_CLEANUP } from '../../api/labels.js';
import type { KubeObject, ObjectMeta, ResourceType } from '../../api/meta.js';
import { isNotFound } from '../../kube/errors.js';
import type { KubeApi, ObjectRef } from '../../kube/types.js';

/** The reference of an object, without absent fields. */
export function refOf(metadata: Pick<ObjectMeta, 'name' | 'namespace'>): ObjectRef {
  return { name: metadata.name, ...(metadata.namespace === undefined ? {} : { namespace: metadata.namespace }) };
}

/** Adds the finalizer unless it is there, and moves the draft to the version that was written. */
export async function ensureFinalizer(
  api: Pick<KubeApi, 'patch'>,
  type: ResourceType,
  draft: Pick<KubeObject, 'metadata'>,
  signal: AbortSignal,
): Promise<void> {
  const finalizers = draft.metadata.finalizers ?? [];
  if (finalizers.includes(FINALIZER_CLEANUP)) return;
  const { resourceVersion } = draft.metadata;
  const body = { metadata: { resourceVersion, finalizers: [...finalizers, FINALIZER_CLEANUP] } };
  const written = await api.patch(type, refOf(draft.metadata), body, { type: 'merge', signal });
  draft.metadata = written.metadata;
}

/** Removes the finalizer. An object that is gone or does not have it is a success. */
export async function releaseFinalizer(
  api: Pick<KubeApi, 'patch'>,
  type: ResourceType,
  object: Pick<KubeObject, 'metadata'>,
  signal: AbortSignal,
): Promise<void> {
  const finalizers = object.metadata.finalizers ?? [];
  if (!finalizers.includes(FINALIZER_CLEANUP)) return;
  const left = finalizers.filter((name) => name !== FINALIZER_CLEANUP);
  const body = { metadata: { resourceVersion: object.metadata.resourceVersion, finalizers: left } };
  try {
    await api.patch(type, refOf(object.metadata), body, { type: 'merge', signal });
  } catch (error) {
    if (!isNotFound(error)) throw error;
  }
}
