/**
 * Maxima for what other programs write and only pass on. The limits of a body (bytes, src/protocol/json-limits.ts) are
 * nearer; these hold whoever reads the value, and from wherever.
 */
import { z } from 'zod';

/** An id, a name, an address or a time. */
export const Name = z.string().max(1024);
/** Above the largest body that is read. */
export const Text = z.string().max(16 * 1024 * 1024);
/** Any number that JavaScript counts with. */
export const Amount = z.number().min(-Number.MAX_VALUE).max(Number.MAX_VALUE);

const MAX_ENTRIES = 10_000;

/** A list that only the limits of its body bound. */
export function listOf<S extends z.ZodType>(entry: S) {
  return z.array(entry).max(MAX_ENTRIES);
}
