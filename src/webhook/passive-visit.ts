/**
 * Visits without intent (spec 4.3.6): somebody pasted or hovered over the URL and a program looked at it. They answer
 * 204 and never start a run.
 */
import type { IncomingHttpHeaders } from 'node:http';
import { PASSIVE_PRODUCTS } from './passive-products.js';

/**
 * Headers by which a program says that nobody asked for the page yet; valid for every method. A value counts when one of
 * its words is in the list. Sources: https://fetch.spec.whatwg.org/#sec-purpose-header, Chromium's preloading_headers.cc,
 * MDN (Sec-Purpose), Opera's FAQ of Speed Dial; reviewed with passive-products.ts.
 */
const INTENT_HEADERS: readonly { header: string; words: readonly string[] }[] = [
  // Chromium, Firefox and Safari: `prefetch`, `prefetch;prerender`, `prefetch;prerender;preview`, `prefetch;anonymous-client-ip`.
  { header: 'sec-purpose', words: ['prefetch', 'prerender', 'preview'] },
  // Older Chromium and Edge: `prefetch`; Safari's page previews: `preview`.
  { header: 'purpose', words: ['prefetch', 'prerender', 'preview', 'instant'] },
  // Safari (Top Sites) and Opera (Speed Dial): `preview`, also written `: preview`; Facebook's app: `preview`, `prefetch`.
  { header: 'x-purpose', words: ['prefetch', 'prerender', 'preview', 'instant'] },
  // Firefox before 115: `prefetch`.
  { header: 'x-moz', words: ['prefetch', 'prerender', 'preview'] },
  // Link preview services that name their intent: a flag.
  { header: 'x-preview', words: ['1', 'true', 'yes', 'preview', 'prefetch'] },
  { header: 'x-link-preview', words: ['1', 'true', 'yes', 'preview', 'prefetch'] },
  { header: 'x-prefetch', words: ['1', 'true', 'yes', 'preview', 'prefetch'] },
];

/** Whether the call is a passive visit. */
export function isPassiveVisit(method: string, headers: IncomingHttpHeaders): boolean {
  if (INTENT_HEADERS.some(({ header, words }) => hasWord(headers[header], words))) return true;
  return method === 'GET' && userAgentProducts(headers['user-agent'] ?? '').some((name) => PASSIVE_PRODUCTS.has(name));
}

function hasWord(value: string | string[] | undefined, words: readonly string[]): boolean {
  if (value === undefined) return false;
  const found = String(value)
    .toLowerCase()
    .split(/[\s,;=]+/);
  return found.some((word) => words.includes(word));
}

/**
 * The names by which a User-Agent may call itself, in lower case and without versions: `a/1 b (compatible; C d/2; +https://e)`
 * has a, b, compatible, `c d` and `+https:`; what stands in front of the first `;` or `(` counts as one name too
 * (`Snap URL Preview Service; bot`, `Discourse Forum Onebox v3`).
 */
function userAgentProducts(userAgent: string): string[] {
  const text = userAgent.toLowerCase().trim();
  const products: string[] = [];
  for (const [, comment, token] of text.matchAll(/\(([^()]*)\)|([^\s;,()]+)/g)) {
    for (const item of comment?.split(';') ?? [token ?? '']) products.push((item.split('/', 1)[0] ?? '').trim());
  }
  const first = (text.split(/[;(]/, 1)[0] ?? '').trim();
  return [first, first.split(/\/| v?(?=\d)/, 1)[0] ?? '', ...products];
}
