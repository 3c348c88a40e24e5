/** Hits of a search as text for a model: everything in them was written by strangers. Pure. */
import type { Hit } from './engines.js';

const MAX_TITLE = 200;
const MAX_URL = 2000;
const MAX_SNIPPET = 600;
const ENTITIES: Readonly<Record<string, string>> = { amp: '&', lt: '<', gt: '>', quot: '"', apos: "'", '#39': "'" };

/** Title, address and snippet of each, a line each; hits without an address of the web are left out. */
export function textOfHits(hits: readonly Hit[], limit: number): string {
  const usable = hits.filter(({ url }) => url.length <= MAX_URL && /^https?:\/\/\S+$/.test(url)).slice(0, limit);
  if (usable.length === 0) return 'Nothing was found.';
  return usable
    .map(({ title, url, snippet }, index) => {
      const lines = [`${index + 1}. ${plain(title, MAX_TITLE) || url}`, url, plain(snippet, MAX_SNIPPET)];
      return lines.filter((line) => line !== '').join('\n');
    })
    .join('\n\n');
}

/** One line without markup. */
function plain(text: string, max: number): string {
  const line = text
    .slice(0, 4 * max)
    .replace(/<\/?[a-z][^<>]{0,200}>/gi, '')
    .replace(/&(#x27|#39|amp|lt|gt|quot|apos);/gi, (_all, name: string) => ENTITIES[name.toLowerCase()] ?? "'")
    .replace(/[\s\p{Cc}]+/gu, ' ')
    .trim();
  return line.length <= max ? line : `${line.slice(0, max - 1).toWellFormed()}…`;
}
