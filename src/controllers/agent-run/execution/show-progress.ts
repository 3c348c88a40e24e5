/**
 * What the status of a run with a Job says before its end: condition Cancelling, and condition Queued while the pod takes long
 * to start. A run that makes progress needs no write at all.
 */
import { isTrue } from '../../../api/conditions.js';
import { isClaimed } from '../../../run/status.js';
import type { Clock } from '../../../runtime/clock.js';
import { showWaiting } from '../admission/show-waiting.js';
import type { RunState } from '../run-state.js';
import type { RunWriter } from '../run-writer.js';

/**
 * A pod that is not up by then is shown as Starting instead of the reason for which the run waited. In a burst many pods take
 * longer than usual, and a write for each would hold them up further.
 */
const STARTING_SHOWN_MS = 30_000;
/** A Job that Kueue has not started by then is shown as waiting for it. */
const KUEUE_SHOWN_MS = 10_000;
/** A cancelled run that goes on for longer says so in its status, so that its deadline survives a change of leader. */
const CANCEL_NOTED_MS = 5_000;

export interface Progress {
  clock: Pick<Clock, 'now'>;
  writer: RunWriter;
  /** How long the run is being cancelled. */
  cancellingMs: number;
}

/** Returns the milliseconds until the next write is due. */
export async function showProgress(progress: Progress, state: RunState, signal: AbortSignal): Promise<number> {
  const due = nextToShow(state, progress);
  if (due === undefined) return Infinity;
  if (due.inMs > 0) return due.inMs;
  await due.write(state, signal);
  return Infinity;
}

interface DueWrite {
  inMs: number;
  write(state: RunState, signal: AbortSignal): Promise<unknown>;
}

function nextToShow({ run, job }: RunState, { clock, writer, cancellingMs }: Progress): DueWrite | undefined {
  if (isClaimed(run)) {
    if (run.spec.cancelRequested !== true || isTrue(run.status?.conditions, 'Cancelling')) return undefined;
    return { inMs: CANCEL_NOTED_MS - cancellingMs, write: (state, signal) => writer.cancelling(state.run, signal) };
  }
  if (job?.suspended === true) {
    return {
      inMs: job.createdAt + KUEUE_SHOWN_MS - clock.now(),
      write: (state, signal) => showWaiting(writer, state.run, { reason: 'WaitingForKueue' }, signal),
    };
  }
  // The status of a run that had to wait still says why. The claim will correct that; a pod that takes long is worth a write.
  if (job === undefined || job.deleting || !isTrue(run.status?.conditions, 'Queued')) return undefined;
  return {
    inMs: job.activeSince + STARTING_SHOWN_MS - clock.now(),
    write: (state, signal) => writer.admitted(state.run, signal),
  };
}
