/** What is left of a status when the API server finds some of it invalid: a run that cannot end would hold up its session. Pure. */
import { isDeepStrictEqual } from 'node:util';
import { findCondition } from '../api/conditions.js';
import { cutUtf8 } from '../runtime/text.js';
import type { RunStatus } from './status.js';

/** What any write can do without. */
const DISPENSABLE = [
  'usage',
  'openCall',
  'output',
  'outputTruncated',
  'pending',
  'transcript',
  'budget',
  'warnings',
] as const;
/** What an end can do without as well. What a run works with must be stored before it works. */
const OF_THE_EXECUTION = ['claim', 'agentUid', 'provider', 'model', 'untrusted', 'approvals', 'duration'] as const;
type Dispensable = (typeof DISPENSABLE | typeof OF_THE_EXECUTION)[number];

const MAX_MESSAGE_BYTES = 1024;

export interface StorableStatus {
  status: RunStatus;
  /** What is missing in it. */
  without: string[];
}

/** The status without what is invalid, as far as a run can do without it. An end says what is missing. */
export function withoutInvalid(
  before: RunStatus | undefined,
  next: RunStatus,
  invalid: ReadonlySet<string>,
): StorableStatus {
  const ends = isEnded(next) && !isEnded(before);
  const fields = [...DISPENSABLE, ...(ends ? OF_THE_EXECUTION : [])].filter(
    (field) => invalid.has(field) && next[field] !== undefined,
  );
  const texts = (['message', 'conditions'] as const).filter((field) => invalid.has(field) && next[field] !== undefined);
  const without = [...fields, ...texts];
  const note = `(Not stored, because Kubernetes found it invalid: ${without.join(', ')}.)`;
  let status = { ...next };
  for (const field of fields) status = withoutField(before, status, field);
  if (ends && without.length > 0) status = noted(status, note);
  if (texts.includes('message')) status.message = note;
  if (texts.includes('conditions')) status = withoutTexts(before, status, note);
  return { status, without };
}

function isEnded(status: RunStatus | undefined): boolean {
  return findCondition(status?.conditions, 'Finished') !== undefined;
}

/** As it was before; not at all when that is what is invalid. */
function withoutField(before: RunStatus | undefined, status: RunStatus, field: Dispensable): RunStatus {
  const kept = { ...status };
  delete kept[field];
  const was = before?.[field];
  return was === undefined || isDeepStrictEqual(was, status[field]) ? kept : { ...kept, [field]: was };
}

function noted(status: RunStatus, note: string): RunStatus {
  const ended = findCondition(status.conditions, 'Finished');
  const text = cutUtf8(ended?.message ?? '', MAX_MESSAGE_BYTES - note.length - 1);
  const message = text === '' ? note : `${text} ${note}`;
  return withConditions({ ...status, message }, (one) => (one === ended ? { ...one, message } : one));
}

/** The texts of the conditions that change now; of all when it is an older one that is invalid. */
function withoutTexts(before: RunStatus | undefined, status: RunStatus, note: string): RunStatus {
  const isOld = (one: Condition) => before?.conditions?.some((other) => isDeepStrictEqual(one, other)) === true;
  const allOld = status.conditions?.every(isOld) === true;
  return withConditions(status, (one) => (isOld(one) && !allOld ? one : { ...one, message: note }));
}

type Condition = NonNullable<RunStatus['conditions']>[number];

function withConditions(status: RunStatus, change: (condition: Condition) => Condition): RunStatus {
  const conditions = status.conditions?.map(change);
  return conditions === undefined ? status : { ...status, conditions };
}
