/**
 * Publishes totals in the status of agents and triggers, for kubectl: at most once in 5 s each, and only when they changed. It
 * also takes the UIDs of removed runs out of `folding` again. The sums themselves are written by the roll-up alone.
 */
import { formatMicroUsd } from '../../run/usage/money.js';
import { sumOf } from '../../run/usage/saturating.js';
import type { KubeObject, ResourceType } from '../../api/meta.js';
import { boxOfNamespace, childName } from '../../api/names.js';
import { totalsOf, isCounted, isReleased } from '../../run/usage/totals.js';
import type { Totals } from '../../run/usage/totals.js';
import { AgentTriggers } from '../../api/v1alpha1/agent-trigger.js';
import { Agents } from '../../api/v1alpha1/agent.js';
import type { Box } from '../../api/v1alpha1/box.js';
import { Boxes } from '../../api/v1alpha1/box.js';
import type { FoldedTotals } from '../../api/v1alpha1/common.js';
import type { Workspace } from '../../api/v1alpha1/workspace.js';
import { Workspaces } from '../../api/v1alpha1/workspace.js';
import type { Cache, Informer, KubeApi } from '../../kube/types.js';
import type { Clock } from '../../runtime/clock.js';
import type { ReconcileResult } from '../../runtime/controller.js';
import { all } from '../common/controller-part.js';
import type { ControllerPart } from '../common/controller-part.js';
import { PublishDelay } from '../common/publish-delay.js';
import { refOf } from '../common/finalizer.js';
import { statusDiff } from '../../kube/status-diff.js';
import { countedRun } from './roll-up.js';
import { RollUpSweep } from './sweep.js';
import { BY_TRIGGER_UID, BY_UID } from '../../projections/agent-run.js';
import type { ControllerRun } from '../../projections/agent-run.js';
import type { ControllerTrigger } from '../../projections/agent-trigger.js';
import type { ControllerAgent } from '../../projections/agent.js';
import { BY_AGENT } from '../../projections/indexes.js';
import { agentUidOf } from '../../run/status.js';

export interface TotalsDependencies {
  api: Pick<KubeApi, 'patch' | 'list'>;
  clock: Clock;
  caches: {
    runs: Informer<ControllerRun>;
    agents: Cache<ControllerAgent>;
    triggers: Cache<ControllerTrigger>;
    boxes: Cache<Box>;
    workspaces: Cache<Workspace>;
  };
  /** Any namespace that exists: the API server's position is read in it. */
  releaseNamespace: string;
}

interface OwnerStatus {
  folded?: FoldedTotals | undefined;
  folding?: string[] | undefined;
}
type RollUpOwner = KubeObject & { status?: OwnerStatus };

interface OwnerKind {
  type: ResourceType;
  get(key: string): RollUpOwner | undefined;
  /** The totals that the status shows. */
  published(key: string): Record<string, unknown>;
}

/** How often an owner with unconfirmed runs is looked at. */
const SWEEP_MS = 10_000;

export function createTotalsController(deps: TotalsDependencies): ControllerPart {
  const { runs } = deps.caches;
  const publishDelay = new PublishDelay(deps.clock);
  const sweepDue = new PublishDelay(deps.clock, SWEEP_MS);
  const sweep = new RollUpSweep({
    api: deps.api,
    clock: deps.clock,
    namespace: deps.releaseNamespace,
    runs: {
      waitForResourceVersion: (version, signal) => runs.waitForResourceVersion(version, signal),
      holds: (uid) => runs.byIndex(BY_UID, uid).some((run) => !isReleased(run)),
    },
  });
  const kinds = ownerKinds(deps);
  return {
    name: 'totals',
    workers: 2,
    watch: (enqueue) => watchTotals(deps, enqueue),
    async reconcile(key, signal): Promise<ReconcileResult> {
      const wait = publishDelay.waitMs(key);
      if (wait > 0) return { requeueAfterMs: wait };
      publishDelay.settle(key);
      const [plural = '', ownerKey = ''] = key.split(':');
      const kind = kinds[plural];
      const owner = kind?.get(ownerKey);
      if (kind === undefined || owner === undefined) {
        sweepDue.settle(key);
        return {};
      }
      const { folding, requeueAfterMs } = await nextFolding(key, owner.status?.folding ?? [], signal);
      const next = { ...kind.published(ownerKey), ...(folding === undefined ? {} : { folding }) };
      await writeChanges(deps.api, { type: kind.type, owner, next }, signal);
      return requeueAfterMs === undefined ? {} : { requeueAfterMs };
    },
  };

  async function nextFolding(
    key: string,
    folding: readonly string[],
    signal: AbortSignal,
  ): Promise<{ folding?: string[]; requeueAfterMs?: number }> {
    if (folding.length === 0) {
      sweepDue.settle(key);
      return {};
    }
    const wait = sweepDue.waitMs(key);
    if (wait > 0) return { requeueAfterMs: wait };
    sweepDue.settle(key);
    const gone = await sweep.confirmGone(key, folding, signal);
    const left = folding.filter((uid) => !gone.has(uid));
    return {
      ...(gone.size === 0 ? {} : { folding: left }),
      ...(left.length === 0 ? {} : { requeueAfterMs: SWEEP_MS }),
    };
  }
}

interface OwnerChange {
  type: ResourceType;
  owner: RollUpOwner;
  next: Record<string, unknown>;
}

/** Writes the fields that differ, on condition that the owner has not changed since it was seen. */
async function writeChanges(
  api: Pick<KubeApi, 'patch'>,
  { type, owner, next }: OwnerChange,
  signal: AbortSignal,
): Promise<void> {
  const status = statusDiff(owner.status, { ...owner.status, ...next });
  if (Object.keys(status).length === 0) return;
  const body = { metadata: { resourceVersion: owner.metadata.resourceVersion }, status };
  await api.patch(type, refOf(owner.metadata), body, { type: 'merge', subresource: 'status', signal });
}

function ownerKinds({ caches }: TotalsDependencies): Record<string, OwnerKind | undefined> {
  const { runs, agents, triggers, boxes, workspaces } = caches;
  const nothing = () => ({});
  return {
    [Agents.plural]: {
      type: Agents,
      get: (key) => agents.get(key),
      published: (key) => agentFields(runs, agents.get(key), key),
    },
    [AgentTriggers.plural]: {
      type: AgentTriggers,
      get: (key) => triggers.get(key),
      published: (key) => triggerFields(runs, triggers.get(key)),
    },
    [Boxes.plural]: { type: Boxes, get: (key) => boxes.get(key), published: nothing },
    [Workspaces.plural]: { type: Workspaces, get: (key) => workspaces.get(key), published: nothing },
  };
}

function agentFields(
  runs: Cache<ControllerRun>,
  agent: ControllerAgent | undefined,
  key: string,
): Record<string, unknown> {
  if (agent === undefined) return {};
  const own = runs.byIndex(BY_AGENT, key).filter((run) => agentUidOf(run) === agent.metadata.uid);
  const totals = ownTotals(agent, own);
  return {
    runs: totals.runs,
    tokens: sumOf(totals.inputTokens, totals.outputTokens),
    ...(totals.costMicroUsd === null ? {} : { costUsd: formatMicroUsd(totals.costMicroUsd) }),
    ...(totals.lastRunAt === null ? {} : { lastRunAt: totals.lastRunAt }),
  };
}

function triggerFields(runs: Cache<ControllerRun>, trigger: ControllerTrigger | undefined): Record<string, unknown> {
  if (trigger === undefined) return {};
  const totals = ownTotals(trigger, runs.byIndex(BY_TRIGGER_UID, trigger.metadata.uid ?? ''));
  return { fireCount: totals.runs, ...(totals.lastRunAt === null ? {} : { lastFiredAt: totals.lastRunAt }) };
}

function ownTotals(owner: RollUpOwner, runs: readonly ControllerRun[]): Totals {
  return totalsOf(owner.status?.folded, owner.status?.folding, runs.filter(isCounted).map(countedRun));
}

function watchTotals({ caches }: TotalsDependencies, enqueue: (key: string) => void): () => void {
  const enqueueOwners = (run: ControllerRun) => {
    const { namespace = '' } = run.metadata;
    const { agent, trigger } = run.spec;
    enqueue(`${Agents.plural}:${namespace}/${agent}`);
    if (trigger?.origin === 'trigger' && trigger.name !== undefined) {
      enqueue(`${AgentTriggers.plural}:${namespace}/${childName(agent, trigger.name)}`);
    }
  };
  // Of Boxes and Workspaces only unconfirmed runs matter here; agents and triggers show zeros from the beginning.
  const watchOwners = (type: ResourceType, cache: Cache<RollUpOwner>, always: boolean) =>
    cache.onChange(({ key, previous, current }) => {
      const isNew = previous === undefined && always;
      if (current !== undefined && (isNew || (current.status?.folding ?? []).length > 0))
        enqueue(`${type.plural}:${key}`);
    });
  return all([
    caches.runs.onChange(({ previous, current }) => {
      const run = current ?? previous;
      if (run !== undefined && boxOfNamespace(run.metadata.namespace ?? '') !== undefined) enqueueOwners(run);
    }),
    watchOwners(Agents, caches.agents, true),
    watchOwners(AgentTriggers, caches.triggers, true),
    watchOwners(Boxes, caches.boxes, false),
    watchOwners(Workspaces, caches.workspaces, false),
  ]);
}
