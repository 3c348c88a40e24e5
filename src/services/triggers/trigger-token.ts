/**
 * The secret part of a trigger's URL: an HMAC over what the URL names, with a key that only the API pods read.
 * Nothing is stored that would let somebody who reads triggers build the URL, and a new nonce invalidates the old URL.
 * See docs/architecture.md#trigger-tokens.
 */
import { createSecretKey, hash, randomBytes, timingSafeEqual } from 'node:crypto';
import type { KeyObject } from 'node:crypto';
import { macOf } from '../../api/keyring.js';
import type { Keyring } from '../../api/keyring.js';

/** Part of the signed text, so that a later form of the token can never equal one of this form. */
const TOKEN_VERSION = 'boxwright-trigger-v1';

export interface TokenParts {
  /** `<box>.<agent>` */
  agentId: string;
  slug: string;
  /** 128 random bits in hex from the trigger's spec. */
  tokenId: string;
}

/** A new nonce for a trigger: 128 random bits in hex. */
export function newTokenId(): string {
  return randomBytes(16).toString('hex');
}

/** The token of a trigger: HMAC-SHA256 over the length-prefixed parts, base64url (43 characters). */
export function triggerToken(key: KeyObject, parts: TokenParts): string {
  return macOf(key, [TOKEN_VERSION, parts.agentId, parts.slug, parts.tokenId]).toString('base64url');
}

/** What decides about a presented token; `tokenId` and `keyId` are those of the trigger. */
export interface TokenCheck {
  agentId: string;
  slug: string;
  tokenId?: string | undefined;
  keyId?: string | undefined;
}

/** Signs when no real key fits, so that the answer for an unknown trigger takes the same work as for a known one. */
const DUMMY_KEY = createSecretKey(randomBytes(32));
const DUMMY_TOKEN_ID = '0'.repeat(32);

/**
 * Whether `presented` is the token of the trigger. An unknown trigger is checked by passing no tokenId: the work is the
 * same and the answer is always false. The comparison is over digests of equal length in constant time.
 */
export function tokenMatches(keyring: Keyring | undefined, check: TokenCheck, presented: string): boolean {
  const key = check.keyId === undefined ? undefined : keyring?.keys.get(check.keyId);
  const known = key !== undefined && check.tokenId !== undefined;
  const expected = triggerToken(key ?? DUMMY_KEY, {
    agentId: check.agentId,
    slug: check.slug,
    tokenId: check.tokenId ?? DUMMY_TOKEN_ID,
  });
  return timingSafeEqual(digest(expected), digest(presented)) && known;
}

function digest(text: string): Buffer {
  return hash('sha256', text, 'buffer');
}

/** `{publicUrl}/api/t/{agent_id}/{slug}/{token}` (spec 4.3). `publicUrl` has no trailing slash. */
export function triggerUrl(publicUrl: string, id: string, slug: string, token: string): string {
  return `${publicUrl.replace(/(?<!\/)\/+$/, '')}/api/t/${id}/${slug}/${token}`;
}
