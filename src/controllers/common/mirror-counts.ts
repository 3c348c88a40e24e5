/** Copies counts into a status, not more often than CountMirror allows. */
import { CONTINUE, continueAndRequeueAfter } from '../../runtime/steps.js';
import type { StepResult } from '../../runtime/steps.js';
import type { CountMirror } from './count-mirror.js';

/** Sets the counts in the draft's status when they are due; the first ones at once. */
export function mirrorCounts<S extends object>(
  mirror: CountMirror,
  owner: string,
  draft: { status?: S },
  counts: Partial<S>,
): StepResult {
  const status = (draft.status ?? {}) as S;
  const fields = Object.keys(counts) as (keyof S)[];
  if (fields.every((field) => status[field] === counts[field])) {
    mirror.settle(owner);
    return CONTINUE;
  }
  const isFirst = fields.every((field) => status[field] === undefined);
  const waitMs = isFirst ? 0 : mirror.waitMs(owner);
  if (waitMs > 0) return continueAndRequeueAfter(waitMs);
  mirror.settle(owner);
  draft.status = { ...status, ...counts };
  return CONTINUE;
}
