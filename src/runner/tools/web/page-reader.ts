/** Reads pages and PDFs in a thread: a hostile one costs its own time and memory, never those of the tools. */
import { Worker } from 'node:worker_threads';
import type { Clock } from '../../../runtime/clock.js';
import { ToolFailure } from '../tool-failure.js';
import type { PageText } from './page-text.js';

const READ_MS = 10_000;
const MAX_HEAP_MIB = 192;
/** By how much the process may grow meanwhile: buffers, into which a PDF is unpacked, are beside the heap. */
const MAX_GROWTH_BYTES = 192 * 1024 * 1024;
const WATCH_MS = 20;

/** What is read. */
export type PageSource = { html: string; url: string } | { pdf: Uint8Array };

/** What the thread says. */
export type WorkerAnswer = { page: PageText } | { unreadable: string };

/** Rejects with {@link ToolFailure} for what cannot be read, or not within the bounds. */
export type ReadPage = (source: PageSource, signal: AbortSignal) => Promise<PageText>;

export interface PageReaderOptions {
  /** The bundled page-worker. */
  worker: string | URL;
  clock: Clock;
}

export function createPageReader({ worker, clock }: PageReaderOptions): ReadPage {
  return (source, signal) =>
    new Promise((resolve, reject) => {
      const thread = new Worker(worker, {
        workerData: source,
        resourceLimits: { maxOldGenerationSizeMb: MAX_HEAP_MIB },
        env: {},
        stdout: true,
        stderr: true,
      });
      const end = (settle: () => void) => {
        cancelTimer();
        stopWatching();
        signal.removeEventListener('abort', onAbort);
        void thread.terminate();
        settle();
      };
      const fail = (reason: string) => end(() => reject(new ToolFailure(reason)));
      const tooComplex = () =>
        fail(`The ${'pdf' in source ? 'PDF' : 'page'} cannot be turned into text: it is too complex.`);
      const onAbort = () => end(() => reject(signal.reason as Error));
      const cancelTimer = clock.after(READ_MS, tooComplex);
      const stopWatching = watchGrowth(clock, tooComplex);
      thread.once('message', (answer: WorkerAnswer) => {
        if ('unreadable' in answer) fail(answer.unreadable);
        else end(() => resolve(answer.page));
      });
      thread.once('error', tooComplex);
      thread.once('exit', tooComplex);
      if (signal.aborted) onAbort();
      else signal.addEventListener('abort', onAbort, { once: true });
    });
}

/** Calls back once when the process has grown too much; returns what ends the watch. */
function watchGrowth(clock: Clock, tooMuch: () => void): () => void {
  const limit = process.memoryUsage.rss() + MAX_GROWTH_BYTES;
  let cancel: () => void = () => undefined;
  const look = () => {
    if (process.memoryUsage.rss() > limit) tooMuch();
    else cancel = clock.after(WATCH_MS, look);
  };
  look();
  return () => cancel();
}
