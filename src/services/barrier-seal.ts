/**
 * Proof that a question of the write barrier comes from a pod of this installation: a MAC with the keyring, which every API
 * pod has and nobody else. The key itself and its MACs of other texts are of no use here, and the other way round, because
 * each MAC names its purpose. A seal that somebody recorded can be sent again: it asks again what is answered already.
 */
import { timingSafeEqual } from 'node:crypto';
import { macOf } from '../api/keyring.js';
import type { KeyringReader } from './triggers/keyring.js';

export const SEAL_HEADER = 'x-boxwright-seal';
const PURPOSE = 'write-barrier';
/** `<id of the key>.<MAC>`, both in base64url; ids have at most 32 characters. */
const SEAL = /^([\w-]{1,128})\.([\w-]{43})$/;

export interface BarrierSeal {
  /** The seal of a text; undefined while this pod has no keyring. */
  of(text: string): string | undefined;
  /** Whether a pod with our keyring has sealed these bytes. */
  isGenuine(seal: string | string[] | undefined, bytes: Buffer): Promise<boolean>;
}

/** Seals with the current key, and accepts each key of the keyring: it is not replaced on all pods at once. */
export function createBarrierSeal(reader: Pick<KeyringReader, 'keyring' | 'ensure'>): BarrierSeal {
  return {
    of(text) {
      const { keyring } = reader;
      const key = keyring?.keys.get(keyring.current);
      return keyring === undefined || key === undefined
        ? undefined
        : `${Buffer.from(keyring.current).toString('base64url')}.${macOf(key, [PURPOSE, text]).toString('base64url')}`;
    },
    async isGenuine(seal, bytes) {
      const [, id, mac] = SEAL.exec(typeof seal === 'string' ? seal : '') ?? [];
      if (id === undefined || mac === undefined) return false;
      const keyId = Buffer.from(id, 'base64url').toString();
      await reader.ensure(keyId);
      const key = reader.keyring?.keys.get(keyId);
      return (
        key !== undefined && timingSafeEqual(macOf(key, [PURPOSE, bytes.toString()]), Buffer.from(mac, 'base64url'))
      );
    },
  };
}
