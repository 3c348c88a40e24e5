/**
 * HTML -> title and markdown of what a person would read of it. Pure, but at the mercy of the page: a small one can cost
 * seconds, so it runs in a thread that can be ended (page-reader.ts).
 */
import { Readability } from '@mozilla/readability';
import { parseHTML } from 'linkedom/worker';
import { markdownOf } from './markdown.js';
import type { PageNode } from './markdown.js';

/** Larger or deeper pages are shown whole: the search for the article takes time with the cube of the depth. */
const MAX_NODES = 100_000;
const MAX_NESTING = 80;
const MAX_TITLE = 300;

export interface PageText {
  title: string;
  markdown: string;
}

interface ParsedPage {
  body: PageNode;
  title: string | null;
  querySelector(selector: string): PageNode | null;
}

/** `url` is where the page came from. Throws RangeError for nesting that no parser stands. */
export function pageText(html: string, url: string): PageText {
  const page = parse(html);
  const base = URL.parse(page.querySelector('base')?.getAttribute?.('href') ?? '', url)?.href ?? url;
  const title = (page.title ?? '').replace(/\s+/g, ' ').trim().slice(0, MAX_TITLE);
  const article = isOrdinary(page.body) ? articleOf(html) : undefined;
  const markdown = article === undefined ? '' : markdownOf(article, base);
  // A page without an article (a list, an application) is shown as it is.
  return { title, markdown: markdown === '' ? markdownOf(page.body, base) : markdown };
}

function parse(html: string): ParsedPage {
  // Without this frame a fragment has no body.
  const whole = /<html[\s>]/i.test(html) ? html : `<!doctype html><html><head></head><body>${html}</body></html>`;
  return (parseHTML(whole) as unknown as { document: ParsedPage }).document;
}

function isOrdinary(body: PageNode): boolean {
  let level = [body];
  let nodes = 0;
  for (let depth = 0; level.length > 0; depth++) {
    nodes += level.length;
    if (depth > MAX_NESTING || nodes > MAX_NODES) return false;
    level = level.flatMap((node) => [...node.childNodes]);
  }
  return true;
}

/** The search for the article changes the document: it gets one of its own. */
function articleOf(html: string): PageNode | undefined {
  try {
    const found = new Readability<PageNode>(parse(html), {
      serializer: (node) => node,
    }).parse();
    return found?.content ?? undefined;
  } catch {
    return undefined;
  }
}
