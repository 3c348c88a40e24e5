/**
 * The keyring signs trigger URLs. It is one Secret in the release namespace, made once by
 * the controller and never overwritten; several keys allow gradual re-keying, because every trigger pins its keyId.
 * See docs/architecture.md#trigger-tokens.
 */
import { createHmac, createSecretKey } from 'node:crypto';
import type { KeyObject } from 'node:crypto';
import { z } from 'zod';

export const KEYRING_SECRET = 'boxwright-keyring';
/** Entry of the Secret with the JSON. */
export const KEYRING_ENTRY = 'keys.json';
export const KEY_BYTES = 32;

export interface Keyring {
  /** Id of the key that new triggers get. */
  readonly current: string;
  /** Key objects: signing with one takes a quarter of the time that it takes with bytes. */
  readonly keys: ReadonlyMap<string, KeyObject>;
}

const KeyringJson = z.object({
  current: z.string().min(1).max(32),
  keys: z.record(z.string().min(1).max(32), z.base64()),
});

/** Reads the JSON of the Secret; throws with what is wrong, never with a key. */
export function parseKeyring(text: string): Keyring {
  const parsed = KeyringJson.safeParse(parseJson(text));
  if (!parsed.success) {
    throw new Error(`${KEYRING_SECRET}: ${KEYRING_ENTRY} must be {"current":"<id>","keys":{"<id>":"<base64>"}}`);
  }
  const keys = new Map<string, KeyObject>();
  for (const [id, text] of Object.entries(parsed.data.keys)) {
    const bytes = Buffer.from(text, 'base64');
    if (bytes.length < KEY_BYTES) throw new Error(`${KEYRING_SECRET}: key ${id} has fewer than ${KEY_BYTES} bytes`);
    keys.set(id, createSecretKey(bytes));
  }
  if (!keys.has(parsed.data.current)) {
    throw new Error(`${KEYRING_SECRET}: current names ${parsed.data.current}, which is not in keys`);
  }
  return { current: parsed.data.current, keys };
}

/** The JSON of a keyring. */
export function formatKeyring(keyring: Keyring): string {
  const keys = Object.fromEntries([...keyring.keys].map(([id, key]) => [id, key.export().toString('base64')]));
  return JSON.stringify({ current: keyring.current, keys });
}

function parseJson(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return undefined;
  }
}

/**
 * HMAC-SHA256 over the texts, each behind its length in bytes (32 bits, big-endian), so that no two lists of texts have the
 * same one. The first text says what is signed.
 */
export function macOf(key: KeyObject, texts: readonly string[]): Buffer {
  const signed = texts.flatMap((text) => {
    const bytes = Buffer.from(text);
    const length = Buffer.alloc(4);
    length.writeUInt32BE(bytes.length);
    return [length, bytes];
  });
  return createHmac('sha256', key).update(Buffer.concat(signed)).digest();
}
