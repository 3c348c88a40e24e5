/**
 * The session of a person in the app: a cookie that only API pods of this installation can make or read. It holds the hash of
 * the API key that was presented and an end, and nothing that would let its holder in elsewhere; what the key may do is looked up
 * at each call, so that revoking it ends the session.
 */
import { createCipheriv, createDecipheriv, randomBytes } from 'node:crypto';
import { z } from 'zod';
import { macOf } from '../api/keyring.js';
import type { Clock } from '../runtime/clock.js';
import type { KeyringReader } from '../services/triggers/keyring.js';

/** A working day; then the key is asked for again. */
export const SESSION_MS = 12 * 60 * 60 * 1000;
const PURPOSE = 'app-session';
const IV_BYTES = 12;
const TAG_BYTES = 16;
/** `<id of the key>.<iv, text and tag>`, both in base64url. */
const SEALED = /^([\w-]{1,128})\.([\w-]{40,1024})$/;

const Session = z.object({ hash: z.string().max(128), endsAt: z.number() });

export interface SessionSeal {
  /** The value of a cookie for this key; undefined while this pod has no keyring. */
  seal(hash: string): string | undefined;
  /** Hash of the key of a session that goes on; undefined for anything else. */
  open(value: string | undefined): Promise<string | undefined>;
}

export interface SessionSealDeps {
  keyring: Pick<KeyringReader, 'keyring' | 'ensure'>;
  clock: Clock;
}

/** Seals with the current key, and opens with each key of the keyring. */
export function createSessionSeal({ keyring: reader, clock }: SessionSealDeps): SessionSeal {
  return {
    seal(hash) {
      const { keyring } = reader;
      const key = keyring?.keys.get(keyring.current);
      if (keyring === undefined || key === undefined) return undefined;
      const iv = randomBytes(IV_BYTES);
      const cipher = createCipheriv('aes-256-gcm', macOf(key, [PURPOSE]), iv, { authTagLength: TAG_BYTES });
      const text = JSON.stringify({ hash, endsAt: clock.now() + SESSION_MS });
      const sealed = Buffer.concat([iv, cipher.update(text), cipher.final(), cipher.getAuthTag()]);
      return `${Buffer.from(keyring.current).toString('base64url')}.${sealed.toString('base64url')}`;
    },
    async open(value) {
      const [, id, sealed] = SEALED.exec(value ?? '') ?? [];
      if (id === undefined || sealed === undefined) return undefined;
      const keyId = Buffer.from(id, 'base64url').toString();
      await reader.ensure(keyId);
      const key = reader.keyring?.keys.get(keyId);
      const bytes = Buffer.from(sealed, 'base64url');
      // One spelling only: base64 ignores bits of its last character.
      if (key === undefined || bytes.toString('base64url') !== sealed) return undefined;
      const session = decrypt(macOf(key, [PURPOSE]), bytes);
      return session !== undefined && session.endsAt > clock.now() ? session.hash : undefined;
    },
  };
}

function decrypt(key: Buffer, bytes: Buffer): z.output<typeof Session> | undefined {
  try {
    const decipher = createDecipheriv('aes-256-gcm', key, bytes.subarray(0, IV_BYTES), { authTagLength: TAG_BYTES });
    decipher.setAuthTag(bytes.subarray(-TAG_BYTES));
    const text = Buffer.concat([decipher.update(bytes.subarray(IV_BYTES, -TAG_BYTES)), decipher.final()]);
    return Session.parse(JSON.parse(text.toString()));
  } catch {
    return undefined;
  }
}

/** How the cookie is named and where it goes. */
export class SessionCookie {
  readonly name: string;
  readonly #attributes: string;

  /** Loopback without TLS is the one place where a browser may keep no `Secure` cookie. */
  constructor(publicUrl: string) {
    const { protocol, hostname, pathname } = new URL(publicUrl);
    const isPlainLoopback = protocol === 'http:' && /^(?:localhost|127(?:\.\d{1,3}){3}|\[::1\])$/.test(hostname);
    this.name = isPlainLoopback ? 'boxwright-session' : '__Secure-boxwright-session';
    const path = `${pathname.replace(/(?<!\/)\/+$/, '')}/api/app`;
    this.#attributes = `Path=${path}; HttpOnly; SameSite=Strict${isPlainLoopback ? '' : '; Secure'}`;
  }

  /** `Set-Cookie` that begins a session. */
  set(value: string): string {
    return `${this.name}=${value}; Max-Age=${SESSION_MS / 1000}; ${this.#attributes}`;
  }

  /** `Set-Cookie` that ends it. */
  clear(): string {
    return `${this.name}=; Max-Age=0; ${this.#attributes}`;
  }

  /** The value that a browser sent. */
  read(header: string | undefined): string | undefined {
    const start = `${this.name}=`;
    const pair = (header ?? '').split(';').find((part) => part.trim().startsWith(start));
    return pair?.trim().slice(start.length);
  }
}
