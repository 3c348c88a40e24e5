/** Box -> hardened namespace. This file says which events trigger a reconcile, and in which order Boxes are reconciled. */
import type { ObjectMeta } from '../../api/meta.js';
import { boxNamespace, boxOfNamespace } from '../../api/names.js';
import { Boxes } from '../../api/v1alpha1/box.js';
import type { Cache } from '../../kube/types.js';
import type { ReconcileResult } from '../../runtime/controller.js';
import { runSteps } from '../../runtime/steps.js';
import { all } from '../common/controller-part.js';
import type { ControllerPart } from '../common/controller-part.js';
import { PublishDelay } from '../common/publish-delay.js';
import { patchStatus } from '../common/status-patch.js';
import type { BoxDependencies } from './dependencies.js';
import { boxSteps } from './steps.js';
import { BY_WORKSPACE } from '../../projections/indexes.js';

/** The controller of Box. */
export function createBoxController(deps: BoxDependencies): ControllerPart {
  const publishDelay = new PublishDelay(deps.clock);
  const steps = boxSteps(deps, publishDelay);
  return {
    name: 'box',
    workers: 4,
    watch: (enqueue) => watchBox(deps, enqueue),
    async reconcile(key, signal): Promise<ReconcileResult | void> {
      const box = deps.caches.boxes.get(key);
      if (box === undefined) return publishDelay.settle(key);
      return await runSteps({
        object: box,
        inputs: { namespace: boxNamespace(box.metadata.name) },
        steps,
        writeStatus: (draft, abort) => patchStatus(deps.api, { type: Boxes, before: box, draft }, abort),
        signal,
      });
    },
  };
}

function watchBox({ caches, counts }: BoxDependencies, enqueue: (key: string) => void): () => void {
  const enqueueNamespace = (namespace: string | undefined) => {
    const box = namespace === undefined ? undefined : boxOfNamespace(namespace);
    if (box !== undefined) enqueue(box);
  };
  const contents = [
    caches.agents,
    caches.triggers,
    caches.serviceAccounts,
    caches.networkPolicies,
    caches.resourceQuotas,
    caches.limitRanges,
    caches.roleBindings,
  ] as readonly Cache<{ metadata: ObjectMeta }>[];
  const passing: readonly Cache<{ metadata: ObjectMeta }>[] = [
    caches.runs,
    caches.schedules,
    caches.evals,
    caches.skills,
    caches.memories,
  ];
  return all([
    caches.boxes.onChange(({ key }) => enqueue(key)),
    caches.namespaces.onChange(({ key }) => enqueueNamespace(key)),
    caches.workspaces.onChange(({ key }) => {
      for (const box of caches.boxes.byIndex(BY_WORKSPACE, key)) enqueue(box.metadata.name);
    }),
    ...contents.map((cache) =>
      cache.onChange(({ current, previous }) => enqueueNamespace((current ?? previous)?.metadata.namespace)),
    ),
    // These change often and matter only while a Box is being deleted; runs matter through the counts.
    ...passing.map((cache) =>
      cache.onChange(({ previous, current }) => {
        if (current === undefined) enqueueNamespace(previous?.metadata.namespace);
      }),
    ),
    caches.probeJobs.onChange(({ current, previous }) => enqueueNamespace((current ?? previous)?.namespace)),
    counts.onChange(enqueueNamespace),
  ]);
}
