/** Usage and transcript positions of working runs, stored while they change: for kubectl, and for whoever takes over. */
import type { Clock } from '../../runtime/clock.js';
import type { RunStore } from './run-store.js';
import { tokensOf, workOf, type ServedRun } from './served-runs.js';

/** A crash loses at most the usage of this time; a shorter run causes no write. */
const PROGRESS_MS = 5_000;

export interface ProgressOptions {
  clock: Clock;
  store: RunStore;
}

export class Progress {
  readonly #options: ProgressOptions;

  constructor(options: ProgressOptions) {
    this.#options = options;
  }

  /** Whether something changed and the last status write is long enough ago. */
  isDue(served: ServedRun): boolean {
    return isUnsaved(served) && this.#options.clock.monotonic() - served.writtenAt >= PROGRESS_MS;
  }

  /** Stores what changed; nothing for a run that ended or went to another pod meanwhile. */
  async save(served: ServedRun): Promise<void> {
    if (!isUnsaved(served)) return;
    let { usage } = served;
    const chunks = served.log?.summary.chunks ?? served.savedChunks;
    let open: number | undefined;
    let waiting: string | undefined;
    served.writtenAt = this.#options.clock.monotonic();
    await this.#options.store.update(served.ref, () => {
      const work = workOf(served);
      usage = work.usage;
      open = tokensOf(work.openCall);
      waiting = work.waiting?.message;
      return { type: 'progressed', work };
    });
    served.savedUsage = usage;
    served.savedOpen = open;
    served.savedWaiting = waiting;
    served.savedChunks = chunks;
  }
}

function isUnsaved(served: ServedRun): boolean {
  const chunks = served.log?.summary.chunks ?? served.savedChunks;
  if (served.usage !== served.savedUsage || chunks !== served.savedChunks) return true;
  return served.call?.waiting?.message !== served.savedWaiting || hasGrown(served);
}

/** A long answer is stored anew each time that it has doubled: a few writes, however long it is. */
function hasGrown({ call, savedOpen }: ServedRun): boolean {
  const open = tokensOf(call?.open);
  if (open === undefined || savedOpen === undefined) return open !== savedOpen;
  return open > savedOpen && open >= 2 * savedOpen;
}
