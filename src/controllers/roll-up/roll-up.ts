/**
 * Roll-up: adds a run that is being removed to the totals of its owners, exactly once, whatever crashes on the way and however
 * many controllers with stale caches do it at the same time.
 *
 * Per owner: GET the owner; GET the run live; if the run's UID is not in `folding`, write sums and UID on
 * condition that the owner has not changed. Why that is exact: a UID leaves `folding` only after our finalizer is gone from its
 * run for good. The run still had it after the owner was read, so if anybody had counted it before, its UID would have been in
 * `folding`; if anybody counts it in between, the write is answered with 409 and we start over.
 * See docs/architecture.md#exact-numbers.
 */
import type { Resource, ResourceType } from '../../api/meta.js';
import { objectKey } from '../../api/meta.js';
import { acceptedAt, boxOfNamespace, callersOf, childName } from '../../api/names.js';
import { countedAt } from '../../run/usage/budget.js';
import { isReleased, rollUp } from '../../run/usage/totals.js';
import type { CountedRun } from '../../run/usage/totals.js';
import { AgentRuns } from '../../api/v1alpha1/agent-run.js';
import type { AgentRun } from '../../api/v1alpha1/agent-run.js';
import { AgentTriggers } from '../../api/v1alpha1/agent-trigger.js';
import { Agents } from '../../api/v1alpha1/agent.js';
import { Boxes } from '../../api/v1alpha1/box.js';
import type { RunStatus } from '../../run/status.js';
import { Workspaces } from '../../api/v1alpha1/workspace.js';
import { invalidStatusFields, isConflict, isNotFound, orUndefined } from '../../kube/errors.js';
import type { KubeApi, ObjectRef } from '../../kube/types.js';
import type { Logger } from '../../observability/logger.js';
import { refOf } from '../common/finalizer.js';
import type { FieldsOf } from '../../run/status-writer.js';

/** Most UIDs in `folding`, as the CRDs say. */
export const MAX_FOLDING = 4096;
/** The most runs that are added in one write. */
const RUNS_PER_WRITE = 200;
/** How often a lost race is repeated at once; after that the engine retries with backoff. */
const MAX_ATTEMPTS = 8;

/** What roll-up owns in the status of every kind that counts, runs among them. */
type OwnerStatus = Pick<RunStatus, FieldsOf<'roll-up'>>;
type OwnerObject = Resource<unknown, OwnerStatus>;

/** An object whose totals contain a run. */
export interface RollUpOwner {
  type: ResourceType;
  ref: ObjectRef;
  /** Undefined: whichever object has the name. */
  uid: string | undefined;
}

/** Too many removed runs are unconfirmed; the sweep makes room. */
export class RollUpFullError extends Error {
  override readonly name = 'RollUpFullError';
  readonly retrySoon = true;
}

type RollUpApi = Pick<KubeApi, 'get' | 'patch'>;

/** How an owner is written. */
interface RollUpAccess {
  api: RollUpApi;
  log: Pick<Logger, 'warn'> | undefined;
}

interface Waiter {
  run: AgentRun;
  uid: string | undefined;
  signal: AbortSignal;
  done: () => void;
  failed: (error: unknown) => void;
}

export class RollUp {
  readonly #queues = new Map<string, OwnerQueue>();

  constructor(
    private readonly api: RollUpApi,
    /** The Workspace of a Box; undefined when the Box is gone, and with it every owner. */
    private readonly workspaceOf: (box: string, signal: AbortSignal) => Promise<string | undefined>,
    private readonly log?: Pick<Logger, 'warn'>,
  ) {}

  /** Resolves when the run is in the totals of all its owners. Only for runs that are being deleted and have ended. */
  async add(run: AgentRun, signal: AbortSignal): Promise<void> {
    const box = boxOfNamespace(run.metadata.namespace ?? '');
    const workspace = box === undefined ? undefined : await this.workspaceOf(box, signal);
    const parts = ownersOf(run, box, workspace).map((owner) => this.#addTo(owner, run, signal));
    // When one owner fails, wait for the others: nothing goes on after the caller was told.
    const failed = (await Promise.allSettled(parts)).find((result) => result.status === 'rejected');
    if (failed !== undefined) throw failed.reason;
  }

  /** Runs of one owner that are added at the same time share one write. */
  #addTo(owner: RollUpOwner, run: AgentRun, signal: AbortSignal): Promise<void> {
    const key = `${owner.type.plural}:${objectKey(owner.ref)}`;
    const queue =
      this.#queues.get(key) ?? new OwnerQueue({ api: this.api, log: this.log }, owner, () => this.#queues.delete(key));
    this.#queues.set(key, queue);
    return queue.add(run, owner.uid, signal);
  }
}

/**
 * Trigger, Agent, Box and Workspace of a run, as far as they are known, and the runs above it. These keep sums of their own,
 * which are part of no total and only tell what is left of their grants.
 */
export function ownersOf(run: AgentRun, box: string | undefined, workspace: string | undefined): RollUpOwner[] {
  const { namespace = '' } = run.metadata;
  const { agent, trigger } = run.spec;
  const owners: RollUpOwner[] = [];
  if (trigger?.origin === 'trigger' && trigger.name !== undefined && trigger.uid !== undefined) {
    const ref = { namespace, name: childName(agent, trigger.name) };
    owners.push({ type: AgentTriggers, ref, uid: trigger.uid });
  }
  const agentUid = run.spec.agentUid ?? run.status?.agentUid;
  if (agentUid !== undefined) owners.push({ type: Agents, ref: { namespace, name: agent }, uid: agentUid });
  if (box !== undefined) owners.push({ type: Boxes, ref: { name: box }, uid: undefined });
  if (workspace !== undefined) owners.push({ type: Workspaces, ref: { name: workspace }, uid: undefined });
  for (const { name, uid } of callersOf(run)) owners.push({ type: AgentRuns, ref: { namespace, name }, uid });
  return owners;
}

/** One owner: one write at a time, with everything that was added meanwhile. */
class OwnerQueue {
  #waiting: Waiter[] = [];
  #working = false;

  constructor(
    private readonly access: RollUpAccess,
    private readonly owner: RollUpOwner,
    private readonly onIdle: () => void,
  ) {}

  /** Rejects when its own signal fires; the rest of the batch goes on. */
  async add(run: AgentRun, uid: string | undefined, signal: AbortSignal): Promise<void> {
    signal.throwIfAborted();
    const { promise, resolve: done, reject: failed } = Promise.withResolvers<void>();
    const waiter: Waiter = { run, uid, signal, done, failed };
    const leave = () => {
      this.#waiting = this.#waiting.filter((one) => one !== waiter);
      failed(signal.reason);
    };
    signal.addEventListener('abort', leave);
    this.#waiting.push(waiter);
    if (!this.#working) void this.#work();
    try {
      await promise;
    } finally {
      signal.removeEventListener('abort', leave);
    }
  }

  async #work(): Promise<void> {
    this.#working = true;
    for (let batch = this.#next(); batch.length > 0; batch = this.#next()) {
      try {
        await rollUpBatch(this.access, this.owner, batch);
        for (const { done } of batch) done();
      } catch (error) {
        for (const { failed } of batch) failed(error);
      }
    }
    this.#working = false;
    this.onIdle();
  }

  #next(): Waiter[] {
    return this.#waiting.splice(0, RUNS_PER_WRITE);
  }
}

/** Goes on as long as one of them waits. */
async function rollUpBatch(access: RollUpAccess, owner: RollUpOwner, batch: readonly Waiter[]): Promise<void> {
  const allLeft = new AbortController();
  const leave = () => {
    if (batch.every(({ signal }) => signal.aborted)) allLeft.abort(batch[0]?.signal.reason);
  };
  for (const { signal } of batch) signal.addEventListener('abort', leave);
  try {
    await rollUpUntilWritten(access, owner, batch, allLeft.signal);
  } finally {
    for (const { signal } of batch) signal.removeEventListener('abort', leave);
  }
}

async function rollUpUntilWritten(
  access: RollUpAccess,
  owner: RollUpOwner,
  batch: readonly Waiter[],
  signal: AbortSignal,
): Promise<void> {
  for (let attempt = 1; ; attempt += 1) {
    try {
      return await rollUpOnce(access, owner, batch, signal);
    } catch (error) {
      if (!isConflict(error) || attempt >= MAX_ATTEMPTS) throw error;
    }
  }
}

async function rollUpOnce(
  { api, log }: RollUpAccess,
  owner: RollUpOwner,
  batch: readonly Waiter[],
  signal: AbortSignal,
): Promise<void> {
  const object = (await orUndefined(api.get(owner.type, owner.ref, { signal }))) as OwnerObject | undefined;
  // An owner that is gone, or a successor of the same name, counts as done.
  if (object === undefined) return;
  const { folded, folding = [] } = object.status ?? {};
  const known = new Set(folding);
  const candidates = batch.filter(({ uid, run }) => {
    return (uid === undefined || uid === object.metadata.uid) && !known.has(run.metadata.uid ?? '');
  });
  const live = await Promise.all(candidates.map(({ run }) => readRun(api, run, signal)));
  const fresh = live.filter((run) => run !== undefined);
  if (fresh.length === 0) return;
  if (folding.length + fresh.length > MAX_FOLDING) throw new RollUpFullError('too many removed runs are unconfirmed');
  const uids = { folding: [...folding, ...fresh.map((run) => run.metadata.uid ?? '')] };
  const write = async (status: OwnerStatus): Promise<void> => {
    const body = { metadata: { resourceVersion: object.metadata.resourceVersion }, status };
    await api.patch(owner.type, owner.ref, body, { type: 'merge', subresource: 'status', signal });
  };
  try {
    await write({ folded: rollUp(folded, fresh.map(countedRun)), ...uids });
  } catch (error) {
    if (isNotFound(error)) return;
    if (!invalidStatusFields(error).has('folded')) throw error;
    log?.warn({ err: error, kind: owner.type.kind, name: owner.ref.name }, 'sums that are invalid are not stored');
    await write(uids);
  }
}

/** The run as it is in etcd now; undefined when it is gone or released, since then somebody has counted it. */
async function readRun(api: RollUpApi, run: AgentRun, signal: AbortSignal): Promise<AgentRun | undefined> {
  const live = await orUndefined(api.get(AgentRuns, refOf(run.metadata), { signal }));
  if (live === undefined || live.metadata.uid !== run.metadata.uid || isReleased(live)) return undefined;
  return live;
}

/** A run as the totals count it. */
export function countedRun(run: AgentRun): CountedRun {
  return {
    uid: run.metadata.uid ?? '',
    createdAt: acceptedAt(run),
    usage: run.status?.usage,
    countedAt: countedAt(run),
  };
}
