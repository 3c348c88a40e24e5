/** Publishes counts in a status, no more often than PublishDelay allows. */
import { CONTINUE, continueAndRequeueAfter } from '../../runtime/steps.js';
import type { StepResult } from '../../runtime/steps.js';
import type { PublishDelay } from './publish-delay.js';

/** Sets the counts in the draft's status when they are due, and the first ones at once. */
export function publishCounts<S extends object>(
  publishDelay: PublishDelay,
  owner: string,
  draft: { status?: S },
  counts: Partial<S>,
): StepResult {
  const status = (draft.status ?? {}) as S;
  const fields = Object.keys(counts) as (keyof S)[];
  if (fields.every((field) => status[field] === counts[field])) {
    publishDelay.settle(owner);
    return CONTINUE;
  }
  const isFirst = fields.every((field) => status[field] === undefined);
  const waitMs = isFirst ? 0 : publishDelay.waitMs(owner);
  if (waitMs > 0) return continueAndRequeueAfter(waitMs);
  publishDelay.settle(owner);
  draft.status = { ...status, ...counts };
  return CONTINUE;
}
