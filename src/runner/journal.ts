/** The runner's own record of its events, in its own emptyDir: what a person reads when no gateway could be reached. */
import { appendFile } from 'node:fs/promises';
import { join } from 'node:path';
import type { RunEvent } from '../protocol/run.js';
import { errorKind } from './log.js';
import type { RunnerLog } from './log.js';

const MAX_JOURNAL_BYTES = 32 * 1024 * 1024;

export interface Journal {
  /** Appends one event. Never rejects: a full disk must not end a run. */
  append(event: RunEvent): Promise<void>;
}

/** JSONL in `directory`, in order, at most 32 MiB; stops at the first failure. */
export function openJournal(directory: string, log: RunnerLog): Journal {
  const path = join(directory, 'events.jsonl');
  let bytes = 0;
  let stopped = false;
  let last = Promise.resolve();
  const write = async (line: string) => {
    bytes += Buffer.byteLength(line);
    if (stopped) return;
    stopped = bytes > MAX_JOURNAL_BYTES;
    if (stopped) return;
    try {
      await appendFile(path, line, { mode: 0o600 });
    } catch (error) {
      stopped = true;
      log.warn({ failure: errorKind(error) }, 'the journal cannot be written');
    }
  };
  return {
    append(event) {
      last = last.then(() => write(`${JSON.stringify(event)}\n`));
      return last;
    },
  };
}
