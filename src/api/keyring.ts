/**
 * The keyring signs trigger URLs (DESIGN 3, "Trigger token"). It is one Secret in the release namespace, made once by
 * the controller and never overwritten; several keys allow gradual re-keying, because every trigger pins its keyId.
 */
import { z } from 'zod';

export const KEYRING_SECRET = 'boxwright-keyring';
/** Entry of the Secret with the JSON. */
export const KEYRING_ENTRY = 'keys.json';
export const KEY_BYTES = 32;

export interface Keyring {
  /** Id of the key that new triggers get. */
  readonly current: string;
  readonly keys: ReadonlyMap<string, Uint8Array>;
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
  const keys = new Map(Object.entries(parsed.data.keys).map(([id, key]) => [id, Buffer.from(key, 'base64')]));
  for (const [id, key] of keys) {
    if (key.length < KEY_BYTES) throw new Error(`${KEYRING_SECRET}: key ${id} has fewer than ${KEY_BYTES} bytes`);
  }
  if (!keys.has(parsed.data.current)) {
    throw new Error(`${KEYRING_SECRET}: current names ${parsed.data.current}, which is not in keys`);
  }
  return { current: parsed.data.current, keys };
}

/** The JSON of a keyring. */
export function formatKeyring(keyring: Keyring): string {
  const keys = Object.fromEntries([...keyring.keys].map(([id, key]) => [id, Buffer.from(key).toString('base64')]));
  return JSON.stringify({ current: keyring.current, keys });
}

function parseJson(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return undefined;
  }
}
