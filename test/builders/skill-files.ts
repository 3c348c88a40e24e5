/** Files of a skill as they are stored, for objects that a test makes without a call. */
import { gzipSync } from 'node:zlib';
import { encodingOf, type StoredFiles } from '../../src/skills/archive.js';

/** What `packFiles` gives, at once. */
export function packedFiles(files: ReadonlyMap<string, Buffer>): StoredFiles {
  const sorted = [...files].sort(([a], [b]) => (a < b ? -1 : 1));
  const index = sorted.map(([path, content]) => ({ path, bytes: content.length, encoding: encodingOf(content) }));
  if (sorted.length === 0) return { files: index };
  const archive = gzipSync(Buffer.concat(sorted.map(([, content]) => content)), { level: 9 });
  return { files: index, archive: archive.toString('base64') };
}
