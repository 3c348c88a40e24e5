/** Workspace -> namespace for its keys, counts of its agents. On deletion its Boxes and keys go first. */
import type { KubeObject } from '../../api/meta.js';
import { boxNamespace, boxOfNamespace, workspaceNamespace, workspaceOfNamespace } from '../../api/names.js';
import { APIKeys } from '../../api/v1alpha1/api-key.js';
import type { APIKey } from '../../api/v1alpha1/api-key.js';
import { Boxes } from '../../api/v1alpha1/box.js';
import type { Box } from '../../api/v1alpha1/box.js';
import { Workspaces } from '../../api/v1alpha1/workspace.js';
import type { Workspace } from '../../api/v1alpha1/workspace.js';
import type { Namespace, NetworkPolicy, ResourceQuota, RoleBinding } from '../../kube/core-types.js';
import type { Cache, KubeApi } from '../../kube/types.js';
import type { Logger } from '../../observability/logger.js';
import type { Clock } from '../../runtime/clock.js';
import type { ReconcileResult } from '../../runtime/controller.js';
import { CONTINUE, DONE, requeueAfter, runSteps } from '../../runtime/steps.js';
import type { Step, StepResult } from '../../runtime/steps.js';
import { all } from '../common/controller-part.js';
import type { ControllerPart } from '../common/controller-part.js';
import { PublishDelay } from '../common/publish-delay.js';
import { deleteObjects } from '../common/delete-objects.js';
import { ensureObject } from '../common/ensure-object.js';
import { ensureFinalizer, releaseFinalizer } from '../common/finalizer.js';
import { publishCounts } from '../common/publish-counts.js';
import { ensureNamespace, namespaceClaim, readNamespace, removeNamespace } from '../common/namespace.js';
import { setReady } from '../common/ready.js';
import { patchStatus } from '../common/status-patch.js';
import { desiredNamespace, desiredNetworkPolicy, desiredQuota, desiredRoleBinding, ownerOf } from './desired.js';
import type { ControllerIdentity } from './desired.js';
import { NetworkPolicies, ResourceQuotas, RoleBindings } from '../../kube/core-types.js';
import type { ControllerAgent } from '../../projections/agent.js';
import { BY_NAMESPACE, BY_WORKSPACE } from '../../projections/indexes.js';

export interface WorkspaceDependencies {
  api: KubeApi;
  clock: Clock;
  log: Logger;
  caches: {
    workspaces: Cache<Workspace>;
    boxes: Cache<Box>;
    agents: Cache<ControllerAgent>;
    apiKeys: Cache<APIKey>;
    namespaces: Cache<Namespace>;
    roleBindings: Cache<RoleBinding>;
    networkPolicies: Cache<NetworkPolicy>;
    resourceQuotas: Cache<ResourceQuota>;
  };
  identity: ControllerIdentity;
}

/** A namespace that is in the way is looked at again this often: annotating it wakes nobody. */
const BLOCKED_RECHECK_MS = 30_000;
/** Cache events wake the Workspace earlier; this is for an event that never comes. */
const DELETION_RECHECK_MS = 2_000;

type WorkspaceStep = Step<Workspace, undefined>;

/** The controller of Workspace. */
export function createWorkspaceController(deps: WorkspaceDependencies): ControllerPart {
  const publishDelay = new PublishDelay(deps.clock);
  const steps = workspaceSteps(deps, publishDelay);
  return {
    name: 'workspace',
    workers: 2,
    watch: (enqueue) => watchWorkspace(deps, enqueue),
    async reconcile(key, signal): Promise<ReconcileResult | void> {
      const workspace = deps.caches.workspaces.get(key);
      if (workspace === undefined) return publishDelay.settle(key);
      return await runSteps({
        object: workspace,
        inputs: undefined,
        steps,
        writeStatus: (draft, abort) => patchStatus(deps.api, { type: Workspaces, before: workspace, draft }, abort),
        signal,
      });
    },
  };
}

function watchWorkspace({ caches }: WorkspaceDependencies, enqueue: (key: string) => void): () => void {
  const enqueueOwner = (namespace: string | undefined) => {
    const workspace = namespace === undefined ? undefined : workspaceOfNamespace(namespace);
    if (workspace !== undefined) enqueue(workspace);
  };
  return all([
    caches.workspaces.onChange(({ key }) => enqueue(key)),
    caches.namespaces.onChange(({ key }) => enqueueOwner(key)),
    ...[caches.networkPolicies, caches.resourceQuotas, caches.roleBindings].map((cache: Cache<KubeObject>) =>
      cache.onChange(({ current, previous }) => enqueueOwner((current ?? previous)?.metadata.namespace)),
    ),
    caches.apiKeys.onChange(({ current, previous }) => {
      if (current === undefined) enqueueOwner(previous?.metadata.namespace);
    }),
    caches.boxes.onChange(({ current, previous }) => {
      const box = current ?? previous;
      if (box !== undefined) enqueue(box.spec.workspace);
    }),
    caches.agents.onChange(({ current, previous }) => {
      if (current !== undefined && previous !== undefined && current.status?.active === previous.status?.active) return;
      const namespace = (current ?? previous)?.metadata.namespace;
      const box = caches.boxes.get((namespace === undefined ? undefined : boxOfNamespace(namespace)) ?? '');
      if (box !== undefined) enqueue(box.spec.workspace);
    }),
  ]);
}

/** deleted? -> finalizer -> namespace -> its guards -> our rights in it -> counts -> Ready. */
function workspaceSteps(deps: WorkspaceDependencies, publishDelay: PublishDelay): readonly WorkspaceStep[] {
  const { api, caches, clock } = deps;
  return [
    {
      name: 'finalize',
      run: (draft, _inputs, signal) =>
        draft.metadata.deletionTimestamp === undefined ? CONTINUE : finalizeWorkspace(deps, draft, signal),
    },
    {
      name: 'finalizer',
      run: async (draft, _inputs, signal) => {
        await ensureFinalizer(api, Workspaces, draft, signal);
        return CONTINUE;
      },
    },
    {
      name: 'namespace',
      run: async (draft, _inputs, signal) => {
        const desired = { owner: ownerOf(draft), namespace: desiredNamespace(draft) };
        const refusal = await ensureNamespace({ api, cache: caches.namespaces }, desired, signal);
        if (refusal !== undefined) {
          setReady(draft, refusal, clock);
          return requeueAfter(BLOCKED_RECHECK_MS);
        }
        draft.status = { ...draft.status, namespace: desired.namespace.metadata.name };
        return CONTINUE;
      },
    },
    {
      name: 'guards',
      run: async (draft, _inputs, signal) => {
        const { networkPolicies, resourceQuotas } = caches;
        const policy = { type: NetworkPolicies, cache: networkPolicies, desired: desiredNetworkPolicy(draft) };
        await ensureObject(api, policy, signal);
        const quota = { type: ResourceQuotas, cache: resourceQuotas, desired: desiredQuota(draft) };
        await ensureObject(api, quota, signal);
        return CONTINUE;
      },
    },
    {
      name: 'rights',
      run: async (draft, _inputs, signal) => {
        const desired = desiredRoleBinding(draft, deps.identity);
        await ensureObject(api, { type: RoleBindings, cache: caches.roleBindings, desired }, signal);
        return CONTINUE;
      },
    },
    {
      name: 'counts',
      run: (draft) => publishCounts(publishDelay, draft.metadata.name, draft, countAgents(deps, draft.metadata.name)),
    },
    {
      name: 'ready',
      run: (draft) => {
        setReady(draft, undefined, clock);
        return DONE;
      },
    },
  ];
}

function countAgents({ caches }: WorkspaceDependencies, workspace: string): { agents: number; activeAgents: number } {
  const boxes = caches.boxes.byIndex(BY_WORKSPACE, workspace);
  const agents = boxes.flatMap((box) => caches.agents.byIndex(BY_NAMESPACE, boxNamespace(box.metadata.name)));
  return { agents: agents.length, activeAgents: agents.filter((agent) => agent.status?.active === true).length };
}

/** One round of the deletion; called until the finalizer is gone. Nothing waits for the garbage collector. */
async function finalizeWorkspace(
  deps: WorkspaceDependencies,
  draft: Workspace,
  signal: AbortSignal,
): Promise<StepResult> {
  const { api } = deps;
  const namespace = workspaceNamespace(draft.metadata.name);
  if (await deleteChildren(deps, draft, signal)) {
    const message = 'the Workspace is being deleted; it waits until its Boxes and API keys are gone';
    setReady(draft, { reason: 'Deleting', message }, deps.clock);
    return requeueAfter(DELETION_RECHECK_MS);
  }
  if (!(await removeNamespace(api, namespace, ownerOf(draft), signal))) return requeueAfter(DELETION_RECHECK_MS);
  await releaseFinalizer(api, Workspaces, draft, signal);
  deps.log.info({ workspace: draft.metadata.name }, 'workspace released');
  return DONE;
}

/** Asks for the deletion of Boxes and keys; true while one is left. */
async function deleteChildren(
  { api, caches }: WorkspaceDependencies,
  workspace: Workspace,
  signal: AbortSignal,
): Promise<boolean> {
  const namespace = workspaceNamespace(workspace.metadata.name);
  const live = await readNamespace(api, namespace, signal);
  const claim = live === undefined ? 'foreign' : namespaceClaim(live, ownerOf(workspace));
  const isOurs = claim === 'owned' || claim === 'adopted';
  const keys = isOurs ? caches.apiKeys.byIndex(BY_NAMESPACE, namespace) : [];
  const boxes = caches.boxes.byIndex(BY_WORKSPACE, workspace.metadata.name);
  // Keys first: nobody comes in any more while the Boxes go.
  await deleteObjects(api, APIKeys, keys, signal);
  await deleteObjects(api, Boxes, boxes, signal);
  return keys.length + boxes.length > 0;
}
