/** What to send when a status changes: a merge patch (RFC 7386). */
import { isDeepStrictEqual } from 'node:util';

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
