/** The events of conditions that turn: a warning when one gets bad, or bad for another reason; a normal one when it is good again. */
import type { ConditionReason } from '../../api/condition-reasons.js';
import { findCondition } from '../../api/conditions.js';
import type { ObjectMeta } from '../../api/meta.js';
import type { Condition } from '../../api/v1alpha1/common.js';
import { redact } from '../../observability/logger.js';
import type { ObjectEvent } from '../../runtime/event-recorder.js';
import { OLD_NEWS_MS, subjectOf } from './subject.js';

/** An object with conditions, as a cache keeps it. */
export interface ConditionedFacts {
  metadata: ObjectMeta;
  status?: { conditions?: Condition[] | undefined } | undefined;
}

export interface ConditionedChange {
  kind: string;
  /** Absent for an object that is seen for the first time: a new one, or one of before this process led. */
  previous?: ConditionedFacts | undefined;
  current: ConditionedFacts;
}

/** True is bad; such a condition is absent while all is well. */
const NEGATIVE: ReadonlySet<string> = new Set(['HandleConflict', 'BrowserUnavailable']);
/** Ready of the same object says the same, with a reason of its own. */
const IN_READY: ReadonlySet<string> = new Set(['Revoked', 'Expired']);
/** Neither good nor bad: it is under way, or somebody wants it so. */
const EXPECTED: ReadonlySet<string> = new Set<ConditionReason>([
  'Deleting',
  'EndpointProbing',
  'Ephemeral',
  'Installing',
  'NetworkProbing',
  'SecretForbidden',
  'VolumeMissing',
]);

/** What the change is worth telling. A condition that is good from the beginning is not. */
export function conditionEvents(change: ConditionedChange, now: number): ObjectEvent[] {
  const { kind, previous, current } = change;
  const before = previous?.status?.conditions;
  const after = current.status?.conditions;
  if (before === after) return [];
  const told = new Map<string, ObjectEvent>();
  for (const type of new Set([...(before ?? []), ...(after ?? [])].map((condition) => condition.type))) {
    if (IN_READY.has(type)) continue;
    const turn = turnOf(findCondition(before, type), findCondition(after, type), now);
    if (turn === undefined || (previous === undefined && isOld(turn, now))) continue;
    const event = {
      subject: subjectOf(kind, current.metadata),
      action: 'ConditionTurned',
      ...turn,
      note: redact(turn.note),
    };
    // Conditions that follow from each other say the same.
    const text = `${event.type} ${event.note}`;
    if (!told.has(text)) told.set(text, event);
  }
  return [...told.values()];
}

type Turn = Pick<ObjectEvent, 'type' | 'reason' | 'note' | 'at'>;

function turnOf(before: Condition | undefined, after: Condition | undefined, now: number): Turn | undefined {
  if (after === undefined) return before === undefined ? undefined : resolved(before, now);
  const { type, status, reason, message } = after;
  const state = stateOf(after);
  const turned = before?.status !== status;
  const note = message === '' ? `Condition ${type} is ${status}.` : message;
  const at = turned ? after.lastTransitionTime : new Date(now).toISOString();
  if (state === 'bad') {
    const isSame = before !== undefined && stateOf(before) === 'bad' && before.reason === reason;
    return isSame ? undefined : { type: 'Warning', reason, note, at };
  }
  const isBetter = state === 'good' && before !== undefined && stateOf(before) !== 'good';
  return isBetter ? { type: 'Normal', reason, note, at } : undefined;
}

/** A condition went. Others go when they make no sense any more, which is no news. */
function resolved(before: Condition, now: number): Turn | undefined {
  if (!NEGATIVE.has(before.type) || stateOf(before) !== 'bad') return undefined;
  const at = new Date(now).toISOString();
  return { type: 'Normal', reason: `${before.reason}Resolved`, note: `Condition ${before.type} is gone.`, at };
}

function stateOf({ type, status, reason }: Condition): 'good' | 'expected' | 'bad' {
  if (NEGATIVE.has(type)) return status === 'True' ? 'bad' : 'good';
  if (status === 'True') return 'good';
  return EXPECTED.has(reason) ? 'expected' : 'bad';
}

function isOld({ at }: Turn, now: number): boolean {
  return now - Date.parse(at) > OLD_NEWS_MS;
}
