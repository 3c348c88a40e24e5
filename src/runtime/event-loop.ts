/** Long work in steps: what one input costs must not keep all others waiting. */
import { setImmediate as immediate } from 'node:timers/promises';

/** Work on so much text or so many bytes is one step: some milliseconds. */
export const STEP_BYTES = 512 * 1024;

/** Resolves when everybody else who is ready has had a turn. */
export async function letOthersRun(): Promise<void> {
  await immediate();
}

/** Between two steps of work on something of so many bytes: a short one goes on at once. */
export async function afterStep(bytes: number): Promise<void> {
  if (bytes >= STEP_BYTES) await letOthersRun();
}
