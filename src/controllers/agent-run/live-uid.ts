/** Caches lag behind the API server and are not in step with each other: before anything final is done, ask the API server. */
import type { ResourceType } from '../../api/meta.js';
import { orUndefined } from '../../kube/errors.js';
import type { KubeApi, ObjectRef } from '../../kube/types.js';

/** How long to wait for the caches to catch up. */
export const CACHE_LAG_MS = 2_000;

/** UID of the object as the API server has it now; undefined when there is none. */
export async function liveUid(
  api: Pick<KubeApi, 'get'>,
  type: ResourceType,
  ref: ObjectRef,
  signal: AbortSignal,
): Promise<string | undefined> {
  const live = await orUndefined(api.get(type, ref, { signal }));
  return live?.metadata.uid;
}
