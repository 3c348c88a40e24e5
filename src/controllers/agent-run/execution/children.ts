/**
 * Runs of agents that another run called: they are cancelled with their parent, and those that the parent waited for when it
 * ends in any way. One key for each child.
 */
import { ANNOTATION_REQUESTED_BY } from '../../../api/labels.js';
import { objectKey } from '../../../api/meta.js';
import { isTerminal } from '../../../run/status.js';
import { AgentRuns } from '../../../api/v1alpha1/agent-run.js';
import { isNotFound } from '../../../kube/errors.js';
import type { Cache, KubeApi } from '../../../kube/types.js';
import { all, type ControllerPart } from '../../common/controller-part.js';
import { LIVE_BY_PARENT } from '../../../projections/agent-run.js';
import type { ControllerRun } from '../../../projections/agent-run.js';

export interface ChildRunDependencies {
  api: Pick<KubeApi, 'patch'>;
  caches: { runs: Cache<ControllerRun> };
}

export function createChildRunController({ api, caches: { runs } }: ChildRunDependencies): ControllerPart {
  return {
    name: 'child-run',
    workers: 4,
    watch: (enqueue) =>
      all([
        runs.onChange(({ key, previous, current }) => {
          if (current?.spec.parent !== undefined) enqueue(key);
          const uid = (current ?? previous)?.metadata.uid ?? '';
          for (const child of runs.byIndex(LIVE_BY_PARENT, uid)) enqueue(objectKey(child.metadata));
        }),
      ]),
    async reconcile(key, signal) {
      const child = runs.get(key);
      const { parent } = child?.spec ?? {};
      if (child === undefined || parent === undefined) return;
      const { namespace = '', name, uid } = child.metadata;
      if (!isOrphan(child, runs.get(`${namespace}/${parent.name}`))) return;
      const body = {
        metadata: { uid, annotations: { [ANNOTATION_REQUESTED_BY]: 'controller' } },
        spec: { cancelRequested: true },
      };
      try {
        await api.patch(AgentRuns, { namespace, name }, body, { type: 'merge', signal });
      } catch (error) {
        if (!isNotFound(error)) throw error;
      }
    },
  };
}

/** Whether nobody wants the child's work any more. Pure. */
export function isOrphan(child: ControllerRun, found: ControllerRun | undefined): boolean {
  const { parent } = child.spec;
  if (parent === undefined || isTerminal(child) || child.spec.cancelRequested === true) return false;
  const live = found?.metadata.uid === parent.uid ? found : undefined;
  // A parent that is gone was deleted, or removed long after its end: either way nobody is left who wants the result.
  if (live === undefined) return true;
  if (live.metadata.deletionTimestamp !== undefined || live.spec.cancelRequested === true) return true;
  return isTerminal(live) && (parent.waits || live.status?.phase === 'cancelled');
}
