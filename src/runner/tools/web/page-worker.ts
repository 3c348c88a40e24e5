/** The thread of page-reader.ts: takes one page, answers once. An entry point of its own in the bundle. */
import { parentPort, workerData } from 'node:worker_threads';
import { pageText } from './page-text.js';

const { html, url } = workerData as { html: string; url: string };
// oxlint-disable-next-line unicorn/require-post-message-target-origin -- a thread has no origin
parentPort?.postMessage(pageText(html, url));
