/** The steps of a Box, in order. */
import { Boxes } from '../../api/v1alpha1/box.js';
import type { Box } from '../../api/v1alpha1/box.js';
import { LimitRanges, NetworkPolicies, ResourceQuotas, ServiceAccounts } from '../../kube/core-types.js';
import { CONTINUE, DONE, requeueAfter } from '../../runtime/steps.js';
import type { Step, StepResult } from '../../runtime/steps.js';
import type { CountMirror } from '../shared/count-mirror.js';
import { deleteObjects } from '../shared/delete-objects.js';
import { ensureObject } from '../shared/ensure-object.js';
import { ensureFinalizer } from '../shared/finalizer.js';
import { BY_NAMESPACE } from '../shared/informers.js';
import { mirrorCounts } from '../shared/mirror-counts.js';
import { ensureNamespace } from '../shared/namespace.js';
import { setReady } from '../shared/ready.js';
import type { NotReady } from '../shared/ready.js';
import type { BoxDependencies, BoxInputs } from './dependencies.js';
import { desiredNamespace, desiredObjects, ownerOf, wrongAmounts } from './desired.js';
import { finalizeBox } from './finalize.js';
import { INTERNET_POLICY } from './network-policies.js';

/** A namespace that is in the way is looked at again this often: annotating it wakes nobody. */
export const BLOCKED_RECHECK_MS = 30_000;

export type BoxStep = Step<Box, BoxInputs>;

/** deleted? -> finalizer -> Workspace -> namespace -> its objects -> counts -> Ready. */
export function boxSteps(deps: BoxDependencies, mirror: CountMirror): readonly BoxStep[] {
  const notReady = (draft: Box, why: NotReady, recheckMs?: number): StepResult => {
    setReady(draft, why, deps.clock);
    return recheckMs === undefined ? DONE : requeueAfter(recheckMs);
  };
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
    {
      name: 'workspace',
      // A Box that has its namespace keeps it guarded when the Workspace is missing; a new one waits for it.
      run: (draft) => {
        if (deps.caches.workspaces.get(draft.spec.workspace) !== undefined) return CONTINUE;
        return draft.status?.namespace === undefined ? notReady(draft, workspaceNotFound(draft)) : CONTINUE;
      },
    },
    {
      name: 'namespace',
      run: async (draft, inputs, signal) => {
        const desired = { owner: ownerOf(draft), namespace: desiredNamespace(draft) };
        const namespaces = { api: deps.api, cache: deps.caches.namespaces };
        const refusal = await ensureNamespace(namespaces, desired, signal);
        if (refusal !== undefined) return notReady(draft, refusal, BLOCKED_RECHECK_MS);
        draft.status = { ...draft.status, namespace: inputs.namespace };
        return CONTINUE;
      },
    },
    {
      name: 'objects',
      run: async (draft, _inputs, signal) => {
        const wrong = wrongAmounts(draft.spec);
        if (wrong.length === 0) {
          await ensureObjects(deps, draft, signal);
          return CONTINUE;
        }
        const message = `${wrong.join(', ')}: not an amount such as 500m, 2 or 512Mi`;
        return notReady(draft, { reason: 'InvalidSpec', message });
      },
    },
    {
      name: 'counts',
      run: (draft, { namespace }) =>
        mirrorCounts(mirror, draft.metadata.name, draft, {
          agents: deps.caches.agents.byIndex(BY_NAMESPACE, namespace).length,
          running: deps.counts.running(namespace),
          queued: deps.counts.queued(namespace),
        }),
    },
    {
      name: 'ready',
      run: (draft) => {
        const hasWorkspace = deps.caches.workspaces.get(draft.spec.workspace) !== undefined;
        setReady(draft, hasWorkspace ? undefined : workspaceNotFound(draft), deps.clock);
        return DONE;
      },
    },
  ];
}

function workspaceNotFound(box: Box): NotReady {
  return {
    reason: 'WorkspaceNotFound',
    message: `Workspace ${box.spec.workspace} does not exist; create it, or a Box with another spec.workspace`,
  };
}

async function ensureObjects(deps: BoxDependencies, box: Box, signal: AbortSignal): Promise<void> {
  const { api, caches } = deps;
  const desired = desiredObjects(box, deps.network);
  // The policies first: nothing may run before they stand.
  for (const policy of desired.networkPolicies) {
    await ensureObject(api, { type: NetworkPolicies, cache: caches.networkPolicies, desired: policy }, signal);
  }
  const { serviceAccount, resourceQuota, limitRange } = desired;
  await ensureObject(api, { type: ResourceQuotas, cache: caches.resourceQuotas, desired: resourceQuota }, signal);
  await ensureObject(api, { type: LimitRanges, cache: caches.limitRanges, desired: limitRange }, signal);
  await ensureObject(api, { type: ServiceAccounts, cache: caches.serviceAccounts, desired: serviceAccount }, signal);
  await removeUnwantedInternet(
    deps,
    box,
    desired.networkPolicies.map((policy) => policy.metadata.name),
    signal,
  );
}

/** The Box was changed from `internet` to `none`. */
async function removeUnwantedInternet(
  { api, caches }: BoxDependencies,
  box: Box,
  wanted: readonly string[],
  signal: AbortSignal,
): Promise<void> {
  if (wanted.includes(INTERNET_POLICY)) return;
  const policy = caches.networkPolicies.get(`${desiredNamespace(box).metadata.name}/${INTERNET_POLICY}`);
  if (policy !== undefined) await deleteObjects(api, NetworkPolicies, [policy], signal);
}
