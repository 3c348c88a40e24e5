/** Opt-in: calls of a trigger that carry the same value in its dedupeHeader are one run. */
import { macOf } from '../../api/keyring.js';
import type { Keyring } from '../../api/keyring.js';
import { ulid } from '../../api/ulid.js';

/** Part of the signed text, so that a name can never equal a token. */
const NAME_VERSION = 'boxwright-dedupe-v1';

export interface DedupeParts {
  agent: string;
  /** Two triggers never share a run, and a trigger made anew begins anew. */
  triggerUid: string;
  keyId: string | undefined;
  /** The header as received. */
  value: string;
}

/**
 * The name of the run: `<agent>-<ulid>` with all bits from an HMAC, so that nobody who knows a delivery id can tell or take
 * the name. Undefined without the trigger's key.
 */
export function dedupeRunName(keyring: Keyring | undefined, parts: DedupeParts): string | undefined {
  const key = parts.keyId === undefined ? undefined : keyring?.keys.get(parts.keyId);
  if (key === undefined) return undefined;
  const digest = macOf(key, [NAME_VERSION, parts.triggerUid, parts.value]);
  return `${parts.agent}-${ulid(digest.readUIntBE(0, 6), digest.subarray(6, 16))}`;
}
