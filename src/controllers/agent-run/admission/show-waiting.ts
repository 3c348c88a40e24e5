/** Condition Queued=True: why a run waits. */
import { findCondition } from '../../../api/conditions.js';
import type { ControllerRun } from '../../../projections/agent-run.js';
import { waitText } from '../../../run/outcome.js';
import type { QueueReason } from '../../../run/reasons.js';
import type { RunWriter } from '../run-writer.js';

/** Why a run waits. `details` replace the general text of the reason. */
export interface Waiting {
  reason: QueueReason;
  details?: string | undefined;
}

/** False, and no write, if the status says so already. */
export async function showWaiting(
  writer: Pick<RunWriter, 'queue'>,
  run: ControllerRun,
  { reason, details }: Waiting,
  signal: AbortSignal,
): Promise<boolean> {
  const shown = shownWaiting(run);
  if (shown?.reason === reason && (details === undefined || shown.message === details)) return false;
  await writer.queue(run, { reason, message: details ?? waitText(reason) }, signal);
  return true;
}

/** Why the run waits according to its status; undefined if the status does not say that it waits. */
export function shownWaiting(run: ControllerRun): { reason: string; message: string } | undefined {
  const queued = findCondition(run.status?.conditions, 'Queued');
  return queued?.status === 'True' ? queued : undefined;
}
