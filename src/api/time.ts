/** Times of objects: how they are written, and when an object was created. */
import { ANNOTATION_CREATED_AT } from './labels.js';
import type { ObjectMeta } from './meta.js';

/** A Kubernetes time as the spec writes times: UTC with milliseconds. */
export function isoTime(time: string): string {
  return new Date(time).toISOString();
}

/** Milliseconds since 1970 of a time that may be missing. */
export function millisOf(time: string | undefined): number | undefined {
  return time === undefined ? undefined : Date.parse(time);
}

/** Clocks of API pod and API server may differ by this much. */
const MAX_CREATED_SKEW_MS = 10_000;

/**
 * When an object was created. Kubernetes keeps whole seconds; the API pod notes the milliseconds beside them, so that
 * "newest first" is right for objects of one second. A note that does not fit the creation (a copied manifest) is ignored.
 */
export function createdAtOf(meta: ObjectMeta): string {
  const created = meta.creationTimestamp ?? '1970-01-01T00:00:00Z';
  const noted = Date.parse(meta.annotations?.[ANNOTATION_CREATED_AT] ?? '');
  const fits = Math.abs(noted - Date.parse(created)) <= MAX_CREATED_SKEW_MS;
  return fits ? new Date(noted).toISOString() : isoTime(created);
}
