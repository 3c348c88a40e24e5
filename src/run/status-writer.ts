/**
 * The one way in which AgentRun status is written: an event goes through transition.ts, and what it changes is sent as a merge
 * patch of these fields under the version that was seen, so that two writers never both decide on the same status. A patch,
 * never the whole object: no process keeps all of a run in memory, and what it does not know stays as it is. Roll-up alone
 * writes its two fields in the way in which it writes them on every kind that counts (src/controllers/roll-up/roll-up.ts).
 * See docs/architecture.md#status-ownership.
 */
import { isDeepStrictEqual } from 'node:util';
import { AgentRuns, type AgentRun, type RunBudget } from '../api/v1alpha1/agent-run.js';
import { statusDiff } from '../kube/status-diff.js';
import type { KubeApi } from '../kube/types.js';
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

export class RunStatusWriter {
  constructor(
    private readonly api: Pick<KubeApi, 'patch'>,
    private readonly owner: StatusOwner,
  ) {}

  /**
   * The run after the event; undefined, without a request, when the event changes nothing. Rejects with 409 when anybody wrote
   * the run since it was seen, and with 404 when it is gone.
   */
  async apply(run: AgentRun, event: StatusEvent, signal?: AbortSignal): Promise<AgentRun | undefined> {
    const next = transition(run, event);
    if (next === undefined) return undefined;
    expectOwner(this.owner, run.status, next);
    const { namespace, name, resourceVersion } = run.metadata;
    const ref = { name, ...(namespace === undefined ? {} : { namespace }) };
    const body = { metadata: { resourceVersion }, status: statusDiff(run.status, next) };
    const options = { type: 'merge', subresource: 'status', ...(signal === undefined ? {} : { signal }) } as const;
    return await this.api.patch(AgentRuns, ref, body, options);
  }
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
