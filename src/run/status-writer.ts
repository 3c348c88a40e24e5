/**
 * The one way in which AgentRun status is written: an event goes through transition.ts, and what it changes is sent as a merge
 * patch of these fields under the version that was seen, so that two writers never both decide on the same status. A patch,
 * never the whole object: no process keeps all of a run in memory, and what it does not know stays as it is. Roll-up alone
 * writes its two fields in the way in which it writes them on every kind that counts (src/controllers/roll-up/roll-up.ts).
 * See docs/architecture.md#status-ownership.
 */
import { isDeepStrictEqual } from 'node:util';
import { AgentRuns, type AgentRun, type RunBudget } from '../api/v1alpha1/agent-run.js';
import { invalidStatusFields } from '../kube/errors.js';
import { sendStatusDiff, statusDiff } from '../kube/status-diff.js';
import type { KubeApi } from '../kube/types.js';
import type { Logger } from '../observability/logger.js';
import type { RunStatus } from './status.js';
import { withoutInvalid, type StorableStatus } from './storable-status.js';
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
  sessionId: ['run controller'],
  claim: ['gateway'],
  provider: ['gateway'],
  model: ['gateway'],
  untrusted: ['gateway'],
  structured: ['gateway'],
  awaited: ['gateway'],
  approvals: ['gateway'],
  pending: ['gateway'],
  atRest: ['gateway'],
  retriedBy: ['run controller'],
  warnings: ['gateway'],
  usage: WHO_ENDS,
  openCall: WHO_ENDS,
  usageFinal: WHO_ENDS,
  'budget.at': ['gateway'],
  'budget.granted': ['budget controller', 'gateway'],
  'budget.wanted': ['gateway'],
  'budget.answered': ['budget controller', 'gateway'],
  'budget.returned': ['gateway'],
  transcript: ['gateway', 'retention'],
  files: ['gateway', 'retention'],
  fileCount: ['gateway', 'retention'],
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

/** How many runs are remembered of which a warning was logged. */
const MAX_WARNED = 1_000;

export class RunStatusWriter {
  readonly #warned = new Set<string>();

  constructor(
    private readonly api: Pick<KubeApi, 'patch'>,
    private readonly owner: StatusOwner,
    private readonly log: Pick<Logger, 'warn'>,
  ) {}

  /**
   * The run after the event; undefined when nothing was to be written. What the API server finds invalid is left out, if a run
   * can do without it. Rejects with 409 when anybody wrote the run since it was seen, and with 404 when it is gone.
   */
  async apply(run: AgentRun, event: StatusEvent, signal?: AbortSignal): Promise<AgentRun | undefined> {
    const next = transition(run, event);
    if (next === undefined) return undefined;
    expectOwner(this.owner, run.status, next);
    const invalid = new Set<string>();
    let storable: StorableStatus = { status: next, without: [] };
    for (;;) {
      try {
        return await this.#write(run, storable.status, signal);
      } catch (error) {
        for (const field of invalidStatusFields(error)) invalid.add(field);
        const left = withoutInvalid(run.status, next, invalid);
        if (left.without.length === storable.without.length) throw error;
        storable = left;
        this.#warn(run, storable.without, error);
      }
    }
  }

  async #write({ metadata, status }: AgentRun, next: RunStatus, signal?: AbortSignal): Promise<AgentRun | undefined> {
    const diff = statusDiff(status, next);
    if (Object.keys(diff).length === 0) return undefined;
    return await sendStatusDiff(this.api, { type: AgentRuns, metadata }, diff, signal);
  }

  /** Once for a run and its fields: the same is tried again and again. */
  #warn({ metadata: { namespace, name, uid } }: AgentRun, fields: string[], err: unknown): void {
    const key = `${uid} ${fields.join(' ')}`;
    if (this.#warned.has(key)) return;
    if (this.#warned.size >= MAX_WARNED) this.#warned.clear();
    this.#warned.add(key);
    this.log.warn({ err, namespace, run: name, fields }, 'a status is written without what is invalid');
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
