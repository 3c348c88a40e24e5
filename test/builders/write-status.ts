import type { KubeObject, ResourceType } from '../../src/api/meta.js';
import type { KubeApi } from '../../src/kube/types.js';

/** Sends the object to its status subresource, under its version: only the status is taken, as by a controller of Kubernetes. */
export function writeStatus<T extends KubeObject>(
  api: Pick<KubeApi, 'patch'>,
  type: ResourceType<T>,
  { metadata: { namespace, name, resourceVersion }, ...object }: T & { status?: object },
): Promise<T> {
  const ref = { name, ...(namespace === undefined ? {} : { namespace }) };
  const body = { ...object, metadata: { resourceVersion } };
  return api.patch(type, ref, body, { type: 'merge', subresource: 'status' });
}
