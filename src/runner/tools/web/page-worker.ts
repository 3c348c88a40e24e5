/** The thread of page-reader.ts: takes one document, answers once. An entry point of its own in the bundle. */
import { parentPort, workerData } from 'node:worker_threads';
import type { PageSource, WorkerAnswer } from './page-reader.js';
import { systemClock } from '../../../runtime/clock.js';
import { pageText } from './page-text.js';

/** Reading a PDF page by page ends this early; what is left of the bound is for the page at work. */
const PDF_MS = 6_000;
const startedAt = systemClock.monotonic();

// oxlint-disable-next-line unicorn/require-post-message-target-origin -- a thread has no origin
parentPort?.postMessage(await answerTo(workerData as PageSource));

async function answerTo(source: PageSource): Promise<WorkerAnswer> {
  if ('html' in source) return { page: pageText(source.html, source.url) };
  // Large: threads that read a page do without.
  const { pdfText, PdfUnreadable } = await import('./pdf-text.js');
  try {
    return { page: await pdfText(source.pdf, () => systemClock.monotonic() - startedAt > PDF_MS) };
  } catch (error) {
    if (error instanceof PdfUnreadable) return { unreadable: error.message };
    throw error;
  }
}
