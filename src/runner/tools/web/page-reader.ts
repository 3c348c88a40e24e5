/** Reads pages in a thread: a hostile page costs its own time and memory, never those of the tools. */
import { Worker } from 'node:worker_threads';
import type { Clock } from '../../../runtime/clock.js';
import { ToolFailure } from '../tool-failure.js';
import type { PageText } from './page-text.js';

const READ_MS = 10_000;
const MAX_HEAP_MIB = 192;

/** Rejects with {@link ToolFailure} for a page that cannot be read within the bounds. */
export type ReadPage = (html: string, url: string, signal: AbortSignal) => Promise<PageText>;

/** `worker` is the bundled page-worker. */
export function createPageReader({ worker, clock }: { worker: string | URL; clock: Clock }): ReadPage {
  return (html, url, signal) =>
    new Promise((resolve, reject) => {
      const thread = new Worker(worker, {
        workerData: { html, url },
        resourceLimits: { maxOldGenerationSizeMb: MAX_HEAP_MIB },
        env: {},
        stdout: true,
        stderr: true,
      });
      const end = (settle: () => void) => {
        cancelTimer();
        signal.removeEventListener('abort', onAbort);
        void thread.terminate();
        settle();
      };
      const fail = () => end(() => reject(new ToolFailure('The page cannot be turned into text: it is too complex.')));
      const onAbort = () => end(() => reject(signal.reason as Error));
      const cancelTimer = clock.after(READ_MS, fail);
      thread.once('message', (page: PageText) => end(() => resolve(page)));
      thread.once('error', fail);
      thread.once('exit', fail);
      if (signal.aborted) onAbort();
      else signal.addEventListener('abort', onAbort, { once: true });
    });
}
