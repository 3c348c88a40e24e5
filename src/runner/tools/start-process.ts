/** Starting a process in a container that is full of them for a moment: the supervisor is about to end a fork bomb. */
import type { ChildProcess } from 'node:child_process';
import type { Clock } from '../../runtime/clock.js';
import { sleep } from '../../runtime/clock.js';

/** The supervisor looks twice a second; a machine that is busy with the bomb may take its time. */
const AGAIN_MS = 500;
const PATIENCE_MS = 15_000;

export interface StartOptions<Child extends ChildProcess> {
  /** Starts the process; one that could not be started has no pid and emits `error`. */
  start: () => Child;
  clock: Clock;
  signal: AbortSignal;
}

/**
 * The process, as soon as there is room for it: for 15 s a start that fails with EAGAIN is tried again. Rejects with the
 * error of the last try; any other error is final.
 */
export async function startWhenPossible<Child extends ChildProcess>(options: StartOptions<Child>): Promise<Child> {
  const { start, clock, signal } = options;
  const giveUpAt = clock.monotonic() + PATIENCE_MS;
  for (;;) {
    const child = start();
    if (child.pid !== undefined) return child;
    const error = await new Promise<NodeJS.ErrnoException>((resolve) => child.once('error', resolve));
    if (error.code !== 'EAGAIN' || signal.aborted || clock.monotonic() >= giveUpAt) throw error;
    await sleep(clock, AGAIN_MS, signal);
  }
}
