/** What makes an API key valid (spec 5.1, 5.2), for the API pod and the controller alike. */
import { hash } from 'node:crypto';
import type { APIKey } from './v1alpha1/api-key.js';

/** Every key begins with this. */
export const API_KEY_PREFIX = 'bw_';
/** Characters of a key that may be shown. */
export const API_KEY_VISIBLE_CHARACTERS = 11;

/** SHA-256 in hex: the form in which a key is stored in `status.hash`. */
export function hashOfApiKey(key: string): string {
  return hash('sha256', key);
}

/** Whether the key has run out. A time that cannot be read has passed: a typing error must not make a key eternal. */
export function isKeyExpired(apiKey: Pick<APIKey, 'spec'>, nowMs: number): boolean {
  const { expiresAt } = apiKey.spec;
  if (expiresAt === undefined) return false;
  const at = Date.parse(expiresAt);
  return Number.isNaN(at) || at <= nowMs;
}

/** Whether a caller that presents this key is let in: issued, not revoked, not expired, not being deleted. */
export function isKeyValid(apiKey: Pick<APIKey, 'metadata' | 'spec' | 'status'>, nowMs: number): boolean {
  if (apiKey.metadata.deletionTimestamp !== undefined) return false;
  if (apiKey.status?.hash === undefined || apiKey.spec.revoked) return false;
  return !isKeyExpired(apiKey, nowMs);
}
