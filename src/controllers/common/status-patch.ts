/** Writing the status of a custom resource without touching what others own in it. */
import { isDeepStrictEqual } from 'node:util';
import type { Resource, ResourceType } from '../../api/meta.js';
import { isNotFound } from '../../kube/errors.js';
import type { KubeApi } from '../../kube/types.js';
import { refOf } from './finalizer.js';

/**
 * The merge patch from one status to another: only top-level fields that differ, null for removed ones. Fields of other
 * writers (totals, roll-up) are equal on both sides and so stay out of it.
 */
export function statusDiff(
  before: Readonly<Record<string, unknown>> | undefined,
  after: Readonly<Record<string, unknown>> | undefined,
): Record<string, unknown> {
  const patch: Record<string, unknown> = {};
  for (const [field, value] of Object.entries(after ?? {})) {
    if (value !== undefined && !isDeepStrictEqual(value, before?.[field])) patch[field] = value;
  }
  for (const [field, value] of Object.entries(before ?? {})) {
    if (value !== undefined && after?.[field] === undefined) patch[field] = null;
  }
  return patch;
}

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
  const status = statusDiff(
    change.before.status as Record<string, unknown> | undefined,
    change.draft.status as Record<string, unknown> | undefined,
  );
  if (Object.keys(status).length === 0) return metadata;
  const ref = refOf(metadata);
  const body = { metadata: { resourceVersion: metadata.resourceVersion }, status };
  try {
    return (await api.patch(change.type, ref, body, { type: 'merge', subresource: 'status', signal })).metadata;
  } catch (error) {
    if (!isNotFound(error)) throw error; // it is gone, and the cache does not know yet
    return metadata;
  }
}
