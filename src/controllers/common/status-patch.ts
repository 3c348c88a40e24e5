/** Writing the status of a custom resource without touching what others own in it. */
import type { Resource, ResourceType } from '../../api/meta.js';
import { isNotFound } from '../../kube/errors.js';
import { sendStatusDiff, statusDiff } from '../../kube/status-diff.js';
import type { KubeApi } from '../../kube/types.js';

/**
 * Patches what changed; the draft's resourceVersion is the precondition (409 when somebody was faster). An object that is
 * gone has no status to write. Returns the metadata after the write, that of the draft when there was none.
 */
export async function patchStatus<S extends object, T extends Resource<unknown, S>>(
  api: Pick<KubeApi, 'patch'>,
  change: { type: ResourceType<T>; before: { status?: S }; draft: Pick<T, 'metadata'> & { status?: S } },
  signal: AbortSignal,
): Promise<T['metadata']> {
  const { metadata } = change.draft;
  const status = statusDiff(change.before.status, change.draft.status);
  if (Object.keys(status).length === 0) return metadata;
  try {
    return (await sendStatusDiff(api, { type: change.type, metadata }, status, signal)).metadata;
  } catch (error) {
    if (!isNotFound(error)) throw error; // it is gone, and the cache does not know yet
    return metadata;
  }
}
