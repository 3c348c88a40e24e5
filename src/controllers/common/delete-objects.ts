/** Deleting children: paced, by name and UID, so that a successor of the same name is never hit. */
import type { KubeObject, ResourceType } from '../../api/meta.js';
import { isConflict, isNotFound } from '../../kube/errors.js';
import type { KubeApi } from '../../kube/types.js';
import { inParallel } from '../../runtime/in-parallel.js';
import { refOf } from './finalizer.js';

/** Deletes of one reconcile; the rest follows in the next one, so that other keys get their turn. */
export const DELETES_AT_ONCE = 200;
const PARALLEL = 8;

/**
 * Asks for the deletion of all objects that are not being deleted yet, at most {@link DELETES_AT_ONCE}. Objects that are
 * gone, or are others by now, count as deleted.
 */
export async function deleteObjects(
  api: Pick<KubeApi, 'delete'>,
  type: ResourceType,
  objects: Iterable<Pick<KubeObject, 'metadata'>>,
  signal: AbortSignal,
): Promise<void> {
  const waiting = [...objects].filter((object) => object.metadata.deletionTimestamp === undefined);
  const batch = waiting.slice(0, DELETES_AT_ONCE);
  await inParallel(batch, (object) => deleteOne(api, type, object, signal), PARALLEL);
}

async function deleteOne(
  api: Pick<KubeApi, 'delete'>,
  type: ResourceType,
  { metadata }: Pick<KubeObject, 'metadata'>,
  signal: AbortSignal,
): Promise<void> {
  const precondition = metadata.uid === undefined ? {} : { uid: metadata.uid };
  try {
    await api.delete(type, refOf(metadata), { ...precondition, propagationPolicy: 'Background', signal });
  } catch (error) {
    if (!isNotFound(error) && !isConflict(error)) throw error;
  }
}
