/** How a skill's files stand in an AgentSkill: their contents one after the other, gzip, base64, and an index beside. */
import { promisify } from 'node:util';
import { gunzipSync, gzip } from 'node:zlib';
import { MAX_SKILL_BYTES } from '../api/v1alpha1/agent-skill.js';
import type { AgentSkill } from '../api/v1alpha1/agent-skill.js';

/** Off the event loop: a text that is made for it takes a third of a second. */
const compress = promisify(gzip);

/** Contents by path. */
export type SkillFiles = ReadonlyMap<string, Buffer>;

export type StoredFiles = Pick<AgentSkill['spec'], 'files' | 'archive'>;

/** The archive is not what the index says: it was written by something else than the control plane. */
export class DamagedArchiveError extends Error {
  override readonly name = 'DamagedArchiveError';
}

/** Files in order of their paths; equal files give equal archives. */
export async function packFiles(files: SkillFiles): Promise<StoredFiles> {
  const sorted = [...files].sort(([a], [b]) => (a < b ? -1 : 1));
  const index = sorted.map(([path, content]) => ({ path, bytes: content.length, encoding: encodingOf(content) }));
  if (sorted.length === 0) return { files: index };
  const archive = await compress(Buffer.concat(sorted.map(([, content]) => content)), { level: 9 });
  return { files: index, archive: archive.toString('base64') };
}

/** Throws a {@link DamagedArchiveError}. */
export function unpackFiles({ files, archive }: StoredFiles): Map<string, Buffer> {
  const contents = files.length === 0 && archive === undefined ? Buffer.alloc(0) : inflate(archive ?? '');
  const unpacked = new Map<string, Buffer>();
  let position = 0;
  for (const { path, bytes } of files) {
    unpacked.set(path, contents.subarray(position, position + bytes));
    position += bytes;
  }
  if (position !== contents.length) throw new DamagedArchiveError('the archive has not the length that its index says');
  return unpacked;
}

function inflate(archive: string): Buffer {
  try {
    return gunzipSync(Buffer.from(archive, 'base64'), { maxOutputLength: MAX_SKILL_BYTES });
  } catch (error) {
    throw new DamagedArchiveError('the archive cannot be read', { cause: error });
  }
}

export type Encoding = AgentSkill['spec']['files'][number]['encoding'];

/** utf8 for text that comes back as it was, base64 for anything else. */
export function encodingOf(content: Buffer): Encoding {
  if (content.includes(0)) return 'base64';
  try {
    new TextDecoder('utf-8', { fatal: true }).decode(content);
    return 'utf8';
  } catch {
    return 'base64';
  }
}

/** The bytes of a text in that encoding; undefined when it is not valid base64. White space in base64 is ignored. */
export function decodeContent(text: string, encoding: Encoding): Buffer | undefined {
  if (encoding === 'utf8') return Buffer.from(text, 'utf8');
  const compact = text.replace(/\s+/g, '');
  const isBase64 = compact.length % 4 === 0 && /^[A-Za-z0-9+/]*={0,2}$/.test(compact);
  return isBase64 ? Buffer.from(compact, 'base64') : undefined;
}

/** Characters of one page of {@link pageOf}: a multiple of four, so that pages of base64 can be decoded alone. */
export const PAGE_CHARACTERS = 100_000;

export interface ContentPage {
  content: string;
  /** Where the next page begins; null at the end. */
  nextOffset: number | null;
  totalChars: number;
}

/** A page of a file's text from `offset` on; never between the two halves of a character. */
export function pageOf(content: Buffer, encoding: Encoding, offset: number): ContentPage {
  const text = content.toString(encoding);
  let end = Math.min(offset + PAGE_CHARACTERS, text.length);
  if (end < text.length && isHighSurrogate(text.charCodeAt(end - 1))) end -= 1;
  return { content: text.slice(offset, end), nextOffset: end < text.length ? end : null, totalChars: text.length };
}

function isHighSurrogate(code: number): boolean {
  return code >= 0xd800 && code <= 0xdbff;
}
