/**
 * Keys with which senders of webhooks sign their calls (spec.verify of AgentTriggers). They lie in one Secret of a fixed
 * name in the namespace of a Box, so that api pods need no right on any other Secret there.
 */

/** The Secret with the keys, in the namespace of the Box; it has {@link LABEL_CREDENTIAL}. */
export const WEBHOOK_KEYS_SECRET = 'boxwright-webhook-keys';

/** How a sender signs: by its name, or by that of the specification which many senders follow. */
export const SIGNATURE_SCHEMES = ['github', 'stripe', 'slack', 'standard-webhooks'] as const;
export type SignatureScheme = (typeof SIGNATURE_SCHEMES)[number];

/** Keys of one entry that hold at the same time; each one costs an HMAC over the body. */
export const MAX_WEBHOOK_KEYS = 4;
/** A longer entry is no list of keys. */
const MAX_ENTRY_CHARACTERS = 4096;
/** Prefix of keys of Standard Webhooks; the rest is base64. */
const STANDARD_PREFIX = 'whsec_';
const BASE64 = /^[A-Za-z0-9+/]+={0,2}$/;

/** The keys in an entry of the Secret, one a line, that a scheme can use; none when there is no such entry. */
export function webhookKeysIn(entry: string | undefined, scheme: SignatureScheme): Buffer[] {
  if (entry === undefined || entry.length > MAX_ENTRY_CHARACTERS) return [];
  const lines = entry.split('\n', 256).map((line) => line.trim());
  const keys = lines.map((line) => (scheme === 'standard-webhooks' ? standardKey(line) : Buffer.from(line)));
  return keys.filter((key) => key.length > 0).slice(0, MAX_WEBHOOK_KEYS);
}

/** Stripe's keys begin with the same prefix and are no base64: they are used as they are. */
function standardKey(line: string): Buffer {
  const text = line.startsWith(STANDARD_PREFIX) ? line.slice(STANDARD_PREFIX.length) : line;
  return BASE64.test(text) ? Buffer.from(text, 'base64') : Buffer.alloc(0);
}
