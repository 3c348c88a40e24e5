/** The condition Ready and others, in the same way for every kind. */
import type { ConditionReason } from '../../api/condition-reasons.js';
import { setCondition } from '../../api/conditions.js';
import type { ConditionInput } from '../../api/conditions.js';
import type { ObjectMeta } from '../../api/meta.js';
import type { Condition } from '../../api/v1alpha1/common.js';
import type { Clock } from '../../runtime/clock.js';
import { isoNow } from '../../runtime/clock.js';

export const READY = 'Ready';

/** Why something is not ready; undefined = it is. */
export interface NotReady {
  reason: ConditionReason;
  message: string;
}

/** A condition whose reason is documented. */
export interface KnownCondition extends ConditionInput {
  reason: ConditionReason;
}

export interface Conditioned {
  metadata: ObjectMeta;
  status?: { conditions?: Condition[] | undefined };
}

/** Sets Ready in the draft's status: True, or False with the reason. */
export function setReady(draft: Conditioned, notReady: NotReady | undefined, clock: Clock): void {
  const { reason, message }: NotReady = notReady ?? { reason: READY, message: '' };
  showCondition(draft, { type: READY, status: notReady === undefined ? 'True' : 'False', reason, message }, clock);
}

/** Sets a condition in the draft's status, about the generation of the draft. */
export function showCondition(draft: Conditioned, condition: KnownCondition, clock: Clock): void {
  const { generation } = draft.metadata;
  const input = { ...condition, ...(generation === undefined ? {} : { observedGeneration: generation }) };
  draft.status = { ...draft.status, conditions: setCondition(draft.status?.conditions, input, isoNow(clock)) };
}
