/** The steps of a Box, in order. */
import { boxNamespace } from '../../api/names.js';
import { Boxes } from '../../api/v1alpha1/box.js';
import type { Box } from '../../api/v1alpha1/box.js';
import { LimitRanges, NetworkPolicies, ResourceQuotas, ServiceAccounts, RoleBindings } from '../../kube/core-types.js';
import { CONTINUE, DONE, requeueAfter } from '../../runtime/steps.js';
import type { Step, StepResult } from '../../runtime/steps.js';
import type { PublishDelay } from '../common/publish-delay.js';
import { deleteObjects } from '../common/delete-objects.js';
import { ensureObject } from '../common/ensure-object.js';
import { ensureFinalizer } from '../common/finalizer.js';
import { publishCounts } from '../common/publish-counts.js';
import { ensureNamespace } from '../common/namespace.js';
import { setReady } from '../common/ready.js';
import type { NotReady } from '../common/ready.js';
import type { BoxDependencies, BoxInputs } from './dependencies.js';
import { desiredNamespace, desiredObjects, ownerOf, wrongAmounts } from './desired.js';
import { showEndpoint } from './endpoint-condition.js';
import { finalizeBox } from './finalize.js';
import { INTERNET_POLICY } from './network-policies.js';
import { networkNotReady } from './network-verdict.js';
import { withPlatformPullSecrets } from './platform-pull-secrets.js';
import { probeNetwork } from './probe-network.js';
import { BY_NAMESPACE } from '../../projections/indexes.js';

/** A conflicting namespace is checked again this often: annotating it triggers no event here. */
const BLOCKED_RECHECK_MS = 30_000;

export type BoxStep = Step<Box, BoxInputs>;

/** deleted? -> finalizer -> Workspace -> namespace -> policies -> other objects -> endpoint -> network probe -> counts -> Ready. */
export function boxSteps(deps: BoxDependencies, publishDelay: PublishDelay): readonly BoxStep[] {
  return [
    {
      name: 'finalize',
      run: (draft, inputs, signal) =>
        draft.metadata.deletionTimestamp === undefined ? CONTINUE : finalizeBox(deps, draft, inputs, signal),
    },
    {
      name: 'finalizer',
      run: async (draft, _inputs, signal) => {
        await ensureFinalizer(deps.api, Boxes, draft, signal);
        return CONTINUE;
      },
    },
    { name: 'workspace', run: (draft) => waitForWorkspace(deps, draft) },
    { name: 'namespace', run: (draft, inputs, signal) => claimNamespace(deps, draft, inputs, signal) },
    // Policies first: nothing may run before they exist.
    { name: 'policies', run: (draft, _inputs, signal) => ensurePolicies(deps, draft, signal) },
    { name: 'objects', run: (draft, _inputs, signal) => ensureObjects(deps, draft, signal) },
    {
      name: 'endpoint',
      run: (draft) => {
        showEndpoint(draft, deps.clock);
        return CONTINUE;
      },
    },
    { name: 'network', run: (draft, inputs, signal) => probeNetwork(deps, draft, inputs, signal) },
    {
      name: 'counts',
      run: (draft, { namespace }) =>
        publishCounts(publishDelay, draft.metadata.name, draft, {
          agents: deps.caches.agents.byIndex(BY_NAMESPACE, namespace).length,
          running: deps.counts.running(namespace),
          queued: deps.counts.queued(namespace),
        }),
    },
    {
      name: 'ready',
      run: (draft) => {
        setReady(draft, hasWorkspace(deps, draft) ? networkNotReady(draft) : workspaceNotFound(draft), deps.clock);
        return DONE;
      },
    },
  ];
}

function hasWorkspace({ caches }: BoxDependencies, box: Box): boolean {
  return caches.workspaces.get(box.spec.workspace) !== undefined;
}

/** A Box that has its namespace keeps it guarded while the Workspace is missing; a new Box waits for the Workspace. */
function waitForWorkspace(deps: BoxDependencies, draft: Box): StepResult {
  if (hasWorkspace(deps, draft) || draft.status?.namespace !== undefined) return CONTINUE;
  setReady(draft, workspaceNotFound(draft), deps.clock);
  return DONE;
}

async function claimNamespace(
  deps: BoxDependencies,
  draft: Box,
  { namespace }: BoxInputs,
  signal: AbortSignal,
): Promise<StepResult> {
  const desired = { owner: ownerOf(draft), namespace: desiredNamespace(draft) };
  const refusal = await ensureNamespace({ api: deps.api, cache: deps.caches.namespaces }, desired, signal);
  if (refusal !== undefined) {
    setReady(draft, refusal, deps.clock);
    return requeueAfter(BLOCKED_RECHECK_MS);
  }
  draft.status = { ...draft.status, namespace };
  return CONTINUE;
}

function workspaceNotFound(box: Box): NotReady {
  return {
    reason: 'WorkspaceNotFound',
    message: `Workspace ${box.spec.workspace} does not exist; create it, or a Box with another spec.workspace`,
  };
}

async function ensurePolicies(deps: BoxDependencies, box: Box, signal: AbortSignal): Promise<StepResult> {
  const { api, caches } = deps;
  const { networkPolicies } = desiredObjects(box, deps);
  for (const desired of networkPolicies) {
    await ensureObject(api, { type: NetworkPolicies, cache: caches.networkPolicies, desired }, signal);
  }
  if (box.spec.egress.mode === 'none') {
    // The Box may have been changed from `internet`.
    const former = caches.networkPolicies.get(`${boxNamespace(box.metadata.name)}/${INTERNET_POLICY}`);
    if (former !== undefined) await deleteObjects(api, NetworkPolicies, [former], signal);
  }
  return CONTINUE;
}

async function ensureObjects(deps: BoxDependencies, draft: Box, signal: AbortSignal): Promise<StepResult> {
  const { api, caches } = deps;
  const wrong = wrongAmounts(draft.spec);
  if (wrong.length > 0) {
    const message = `${wrong.join(', ')}: not an amount such as 500m, 2 or 512Mi`;
    setReady(draft, { reason: 'InvalidSpec', message }, deps.clock);
    return DONE;
  }
  const { serviceAccount, resourceQuota, limitRange, credentialsBinding } = desiredObjects(draft, deps);
  await ensureObject(api, { type: ResourceQuotas, cache: caches.resourceQuotas, desired: resourceQuota }, signal);
  await ensureObject(api, { type: LimitRanges, cache: caches.limitRanges, desired: limitRange }, signal);
  const account = { type: ServiceAccounts, cache: caches.serviceAccounts, desired: serviceAccount };
  await ensureObject(api, { ...account, adjust: withPlatformPullSecrets }, signal);
  await ensureObject(api, { type: RoleBindings, cache: caches.roleBindings, desired: credentialsBinding }, signal);
  return CONTINUE;
}
