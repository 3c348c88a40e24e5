/**
 * PDF -> its title and the text of its pages. At the mercy of the file, as {@link pageText} is of its page: it runs in a thread
 * that is ended when it needs too long or too much.
 */
import { getDocument } from 'unpdf/pdfjs';
import type { PageText } from './page-text.js';

const MAX_PAGES = 1000;
const MAX_TEXT = 2 * 1024 * 1024;
const MAX_TITLE = 300;
const SILENT = 0;

/** The file has no text that can be read; the message is for the model. */
export class PdfUnreadable extends Error {
  override readonly name = 'PdfUnreadable';
}

/** `giveUp` is asked after each page: what was read by then is the answer. Rejects with {@link PdfUnreadable}. */
export async function pdfText(data: Uint8Array, giveUp: () => boolean): Promise<PageText> {
  const document = await getDocument({
    data: new Uint8Array(data),
    verbosity: SILENT,
    useSystemFonts: false,
    disableFontFace: true,
  }).promise.catch(unreadable);
  const pages: string[] = [];
  let length = 0;
  let hasText = false;
  for (let number = 1; number <= Math.min(document.numPages, MAX_PAGES); number++) {
    const text = await textOfPage(document, number);
    hasText ||= text !== '';
    length += text.length;
    pages.push(`[page ${number}]\n${text}`.trim());
    if (length > MAX_TEXT || giveUp()) break;
  }
  const count = document.numPages === 1 ? '1 page' : `${document.numPages} pages`;
  if (!hasText) throw new PdfUnreadable(`The PDF of ${count} has no text: it may hold pictures of pages.`);
  const rest = pages.length < document.numPages ? [`[only the first ${pages.length} of ${count} were read]`] : [];
  return { title: await titleOf(document), markdown: [...pages, ...rest].join('\n\n') };
}

type Document = Awaited<ReturnType<typeof getDocument>['promise']>;

async function textOfPage(document: Document, number: number): Promise<string> {
  try {
    const page = await document.getPage(number);
    const { items } = await page.getTextContent();
    page.cleanup();
    return items
      .map(({ str = '', hasEOL }) => (hasEOL === true ? `${str}\n` : str))
      .join('')
      .trim();
  } catch {
    return '(This page is damaged.)';
  }
}

async function titleOf(document: Document): Promise<string> {
  const title = (await document.getMetadata().catch(() => undefined))?.info['Title'];
  return typeof title === 'string' ? title.trim().slice(0, MAX_TITLE).toWellFormed() : '';
}

function unreadable(error: unknown): never {
  const isLocked = (error as Error).name === 'PasswordException';
  throw new PdfUnreadable(isLocked ? 'The PDF is encrypted: it needs a password.' : 'The PDF is damaged.');
}
