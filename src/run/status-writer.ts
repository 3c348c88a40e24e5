/**
 * The one way in which AgentRun status is written: an event goes through transition.ts, and what it changes is sent as a merge
 * patch of these fields under the version that was seen, so that two writers never both decide on the same status. A patch,
 * never the whole object: no process keeps all of a run in memory, and what it does not know stays as it is. Roll-up alone
 * writes its two fields in the way in which it writes them on every kind that counts (src/controllers/roll-up/roll-up.ts).
 * See docs/architecture.md#status-ownership.
 */
import { isDeepStrictEqual } from 'node:util';
import { findCondition } from '../api/conditions.js';
import { AgentRuns, type AgentRun, type RunBudget } from '../api/v1alpha1/agent-run.js';
import { invalidStatusFields } from '../kube/errors.js';
import { sendStatusDiff, statusDiff } from '../kube/status-diff.js';
import type { KubeApi } from '../kube/types.js';
import type { Logger } from '../observability/logger.js';
import { cutUtf8 } from '../runtime/text.js';
import type { RunStatus } from './status.js';
import { transition, type StatusEvent } from './transition.js';

/** The parts that write the status of runs. */
export type StatusOwner =
  'gateway' | 'run controller' | 'budget controller' | 'archive controller' | 'retention' | 'roll-up';

type ConditionType = 'Queued' | 'Started' | 'Cancelling' | 'Finished' | 'Archived';
type Field =
  Exclude<keyof RunStatus, 'conditions' | 'budget'> | `condition ${ConditionType}` | `budget.${keyof RunBudget}`;

/** Whoever ends a run says so. */
const WHO_ENDS = ['gateway', 'run controller'] as const;

/** Who may write which field. What stands in more than one hand has a rule in transition.ts that says when. */
export const FIELD_OWNERS = {
  'condition Queued': ['run controller', 'gateway'],
  'condition Started': ['gateway'],
  'condition Cancelling': ['run controller'],
  'condition Finished': WHO_ENDS,
  'condition Archived': ['archive controller'],
  phase: WHO_ENDS,
  reason: WHO_ENDS,
  message: WHO_ENDS,
  finishedAt: WHO_ENDS,
  duration: WHO_ENDS,
  output: WHO_ENDS,
  outputTruncated: WHO_ENDS,
  agentUid: ['run controller'],
  claim: ['gateway'],
  provider: ['gateway'],
  model: ['gateway'],
  untrusted: ['gateway'],
  approvals: ['gateway'],
  pending: ['gateway'],
  usage: WHO_ENDS,
  openCall: WHO_ENDS,
  usageFinal: WHO_ENDS,
  'budget.at': ['gateway'],
  'budget.granted': ['budget controller', 'gateway'],
  'budget.wanted': ['gateway'],
  'budget.answered': ['budget controller', 'gateway'],
  'budget.returned': ['gateway'],
  transcript: ['gateway', 'retention'],
  folded: ['roll-up'],
  folding: ['roll-up'],
} as const satisfies Record<Field, readonly StatusOwner[]>;

type Owners = typeof FIELD_OWNERS;

/** The fields that a part may write. */
export type FieldsOf<O extends StatusOwner> = {
  [F in keyof Owners]: O extends Owners[F][number] ? F : never;
}[keyof Owners];

/** Somebody writes what is not theirs: a mistake in our code. */
export class NotOwnerError extends Error {
  override readonly name = 'NotOwnerError';
}

/**
 * What a run can end without. When the API server finds such a value invalid, the rest is written: a run that cannot end would
 * hold up its session, and the removal of all that counts it.
 */
const DISPENSABLE = ['usage', 'openCall', 'output', 'outputTruncated', 'pending', 'transcript', 'budget'] as const;
const MAX_MESSAGE_BYTES = 1024;

export class RunStatusWriter {
  constructor(
    private readonly api: Pick<KubeApi, 'patch'>,
    private readonly owner: StatusOwner,
    private readonly log?: Pick<Logger, 'warn'>,
  ) {}

  /**
   * The run after the event; undefined, without a request, when the event changes nothing. Rejects with 409 when anybody wrote
   * the run since it was seen, and with 404 when it is gone.
   */
  async apply(run: AgentRun, event: StatusEvent, signal?: AbortSignal): Promise<AgentRun | undefined> {
    const next = transition(run, event);
    if (next === undefined) return undefined;
    expectOwner(this.owner, run.status, next);
    try {
      return await this.#write(run, next, signal);
    } catch (error) {
      const refused = invalidStatusFields(error);
      const left = DISPENSABLE.filter((field) => refused.has(field) && next[field] !== undefined);
      if (left.length === 0) throw error;
      const { namespace, name } = run.metadata;
      this.log?.warn({ err: error, namespace, run: name, fields: left }, 'a status is written without what is invalid');
      return await this.#write(run, withoutFields(run.status, next, left), signal);
    }
  }

  #write({ metadata, status }: AgentRun, next: RunStatus, signal?: AbortSignal): Promise<AgentRun> {
    return sendStatusDiff(this.api, { type: AgentRuns, metadata }, statusDiff(status, next), signal);
  }
}

/** The status with these fields as they were before; an end that is written now says so. */
function withoutFields(
  before: RunStatus | undefined,
  next: RunStatus,
  fields: readonly (typeof DISPENSABLE)[number][],
): RunStatus {
  const kept: RunStatus = { ...next };
  for (const field of fields) {
    delete kept[field];
    if (before?.[field] !== undefined) Object.assign(kept, { [field]: before[field] });
  }
  const ended = findCondition(next.conditions, 'Finished');
  if (ended === undefined || findCondition(before?.conditions, 'Finished') !== undefined) return kept;
  const note = `(Not stored, because Kubernetes found it invalid: ${fields.join(', ')}.)`;
  const message = cutUtf8(ended.message, MAX_MESSAGE_BYTES - note.length - 1);
  const noted = message === '' ? note : `${message} ${note}`;
  const conditions = next.conditions?.map((one) => (one === ended ? { ...one, message: noted } : one));
  return { ...kept, message: noted, ...(conditions === undefined ? {} : { conditions }) };
}

/** Throws {@link NotOwnerError}. */
export function expectOwner(owner: StatusOwner, before: RunStatus | undefined, after: RunStatus): void {
  for (const field of changedFields(before, after)) {
    if (!ownersOf(field).includes(owner)) throw new NotOwnerError(`${owner} does not own ${field} of an AgentRun`);
  }
}

function ownersOf(field: string): readonly StatusOwner[] {
  return Object.hasOwn(FIELD_OWNERS, field) ? FIELD_OWNERS[field as Field] : [];
}

function changedFields(before: RunStatus | undefined, after: RunStatus): string[] {
  const { conditions, budget, ...fields } = statusDiff(before, after);
  return [
    ...Object.keys(fields),
    ...(conditions === undefined ? [] : changedConditions(before?.conditions ?? [], after.conditions ?? [])),
    ...(budget === undefined
      ? []
      : Object.keys(statusDiff(before?.budget, after.budget)).map((key) => `budget.${key}`)),
  ];
}

type Conditions = NonNullable<RunStatus['conditions']>;

function changedConditions(before: Conditions, after: Conditions): string[] {
  const types = new Set([...before, ...after].map(({ type }) => type));
  const of = (list: Conditions, type: string) => list.find((condition) => condition.type === type);
  return [...types]
    .filter((type) => !isDeepStrictEqual(of(before, type), of(after, type)))
    .map((type) => `condition ${type}`);
}
