/**
 * Download URLs of published files: what the URL names, and until when it opens it, under an HMAC with a key that only API
 * pods read. Nothing is stored, so nobody who reads runs can build one. See docs/files.md#downloads.
 */
import { createSecretKey, hash, randomBytes, timingSafeEqual } from 'node:crypto';
import { macOf } from '../../api/keyring.js';
import type { Keyring } from '../../api/keyring.js';
import type { RunFile } from '../../api/v1alpha1/agent-run.js';
import { isoTime } from '../../api/time.js';
import type { Clock } from '../../runtime/clock.js';

/** Part of the signed text, so that no other token of ours, or later form of this one, can equal it. */
const TOKEN_VERSION = 'boxwright-file-v1';
/** How long a URL opens its file. */
export const FILE_URL_MS = 60 * 60 * 1000;

/** What a download URL names. */
export interface FileTarget {
  box: string;
  run: string;
  sha256: string;
  name: string;
  /** Seconds since the epoch. */
  expires: number;
}

/** A file as the tools show it. */
export interface FileRecord {
  name: string;
  mediaType: string;
  bytes: number;
  sha256: string;
  description?: string;
  /** Null while the keys are not read. */
  url: string | null;
  expiresAt: string | null;
}

export interface FileLinkDeps {
  keyring: () => Keyring | undefined;
  publicUrl: string;
  clock: Clock;
}

/** The files of a run for its readers, in the order of publishing; of one name the newest. */
export class FileLinks {
  constructor(private readonly deps: FileLinkDeps) {}

  of({ box, run }: Pick<FileTarget, 'box' | 'run'>, files: readonly RunFile[] = []): FileRecord[] {
    const newest = files.filter(({ name }, index) => !files.slice(index + 1).some((later) => later.name === name));
    return newest.map(({ name, mediaType, bytes, sha256, description }) => ({
      name,
      mediaType,
      bytes,
      sha256,
      ...(description === undefined ? {} : { description }),
      ...this.#link({ box, run, sha256, name }),
    }));
  }

  #link(file: Omit<FileTarget, 'expires'>): Pick<FileRecord, 'url' | 'expiresAt'> {
    const { keyring, publicUrl, clock } = this.deps;
    const keys = keyring();
    const key = keys?.keys.get(keys.current);
    if (keys === undefined || key === undefined) return { url: null, expiresAt: null };
    const expires = Math.floor((clock.now() + FILE_URL_MS) / 1000);
    const token = `${keys.current}.${macOf(key, signedTexts({ ...file, expires })).toString('base64url')}`;
    const parts = [file.box, file.run, file.sha256, String(expires), token, file.name];
    const path = parts.map((part) => encodeURIComponent(part)).join('/');
    return { url: `${publicUrl}/api/files/${path}`, expiresAt: isoTime(new Date(expires * 1000).toISOString()) };
  }
}

/** Signs where no key fits, so that every URL costs the same work. */
const DUMMY_KEY = createSecretKey(randomBytes(32));

/** Whether the token opens the file now. One HMAC whatever is wrong, compared in constant time. */
export function fileTokenMatches(
  keyring: Keyring | undefined,
  { file, token, now }: { file: FileTarget; token: string; now: number },
): boolean {
  const dot = token.lastIndexOf('.');
  const key = keyring?.keys.get(token.slice(0, Math.max(0, dot)));
  const expected = macOf(key ?? DUMMY_KEY, signedTexts(file)).toString('base64url');
  const isSame = timingSafeEqual(digest(expected), digest(token.slice(dot + 1)));
  return isSame && key !== undefined && now < file.expires * 1000;
}

function signedTexts({ box, run, sha256, name, expires }: FileTarget): string[] {
  return [TOKEN_VERSION, box, run, sha256, name, String(expires)];
}

function digest(text: string): Buffer {
  return hash('sha256', text, 'buffer');
}
