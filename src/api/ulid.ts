/** Run names: `<agent>-<ulid in lower case>`. 48 bits of time and 80 random bits in Crockford base 32, 26 characters. */
import { randomBytes } from 'node:crypto';

const ALPHABET = '0123456789abcdefghjkmnpqrstvwxyz';

/** A ULID in lower case from a time in milliseconds and exactly 10 bytes. The time in it is never read back. */
export function ulid(timeMs: number, random: Uint8Array = randomBytes(10)): string {
  if (random.length !== 10) throw new RangeError('a ULID takes exactly 10 random bytes');
  let value = BigInt(timeMs) & 0xffff_ffff_ffffn;
  for (const byte of random) value = (value << 8n) | BigInt(byte);
  let text = '';
  for (let i = 0; i < 26; i++) {
    text = ALPHABET.charAt(Number(value & 31n)) + text;
    value >>= 5n;
  }
  return text;
}

/** A new run name for an agent; at most 36 + 1 + 26 = 63 characters. */
export function newRunName(agent: string, timeMs: number): string {
  return `${agent}-${ulid(timeMs)}`;
}
