/** Kubernetes conditions as pure list operations. */
import type { Condition } from './v1alpha1/common.js';

export interface ConditionInput {
  type: string;
  status: Condition['status'];
  reason: string;
  message: string;
  observedGeneration?: number;
}

const MAX_MESSAGE = 1024;

/** Returns the list with one condition set; lastTransitionTime moves only when status changes (as upstream does). */
export function setCondition(list: readonly Condition[] | undefined, input: ConditionInput, now: string): Condition[] {
  const previous = list?.find((condition) => condition.type === input.type);
  const next: Condition = {
    ...input,
    message: input.message.length > MAX_MESSAGE ? `${input.message.slice(0, MAX_MESSAGE - 1)}…` : input.message,
    lastTransitionTime: previous !== undefined && previous.status === input.status ? previous.lastTransitionTime : now,
  };
  const others = (list ?? []).filter((condition) => condition.type !== input.type);
  return [...others, next].sort((a, b) => (a.type < b.type ? -1 : 1));
}

/** The condition of that type, if any. */
export function findCondition(list: readonly Condition[] | undefined, type: string): Condition | undefined {
  return list?.find((condition) => condition.type === type);
}

/** Whether the condition is there with status True. */
export function isTrue(list: readonly Condition[] | undefined, type: string): boolean {
  return findCondition(list, type)?.status === 'True';
}
