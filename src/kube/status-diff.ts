/** What to send when a status changes: a merge patch (RFC 7386). */
import { isDeepStrictEqual } from 'node:util';
import type { KubeObject, ResourceType } from '../api/meta.js';
import type { KubeApi } from './types.js';

/**
 * The merge patch from one status to another: only top-level fields that differ, null for removed ones. Fields of other
 * writers (totals, roll-up) are equal on both sides and so stay out of it.
 */
export function statusDiff(before: object | undefined, after: object | undefined): Record<string, unknown> {
  const patch: Record<string, unknown> = {};
  const known = new Map<string, unknown>(Object.entries(before ?? {}));
  const next = new Map<string, unknown>(Object.entries(after ?? {}));
  for (const [field, value] of next) {
    if (value !== undefined && !isDeepStrictEqual(value, known.get(field))) patch[field] = value;
  }
  for (const [field, value] of known) {
    if (value !== undefined && next.get(field) === undefined) patch[field] = null;
  }
  return patch;
}

/**
 * Sends what a status changes, under the version of the object that was seen. Rejects with 409 when anybody wrote it since,
 * and with 404 when it is gone.
 */
export function sendStatusDiff<T extends KubeObject>(
  api: Pick<KubeApi, 'patch'>,
  target: { type: ResourceType<T>; metadata: KubeObject['metadata'] },
  diff: Record<string, unknown>,
  signal?: AbortSignal,
): Promise<T> {
  const { namespace, name, resourceVersion } = target.metadata;
  const ref = { name, ...(namespace === undefined ? {} : { namespace }) };
  const body = { metadata: { resourceVersion }, status: diff };
  const options = { type: 'merge', subresource: 'status', ...(signal === undefined ? {} : { signal }) } as const;
  return api.patch(target.type, ref, body, options);
}
