/** Whether a namespace that somebody else made runs anything: adopting it would put our rules on those pods. */
import type { ResourceType } from '../../api/meta.js';
import { Jobs, Pods } from '../../kube/core-types.js';
import type { KubeApi } from '../../kube/types.js';

const apps = (kind: string, plural: string): ResourceType => ({
  group: 'apps',
  version: 'v1',
  kind,
  plural,
  namespaced: true,
});

/** The kinds that run pods; ReplicaSets and ReplicationControllers of old clusters show as their pods. */
export const WORKLOAD_TYPES: readonly ResourceType[] = [
  Pods,
  Jobs,
  { group: 'batch', version: 'v1', kind: 'CronJob', plural: 'cronjobs', namespaced: true },
  apps('Deployment', 'deployments'),
  apps('StatefulSet', 'statefulsets'),
  apps('DaemonSet', 'daemonsets'),
];

/** The first workload found, as `Deployment web`; undefined when there is none. */
export async function findWorkloads(
  api: Pick<KubeApi, 'list'>,
  namespace: string,
  signal: AbortSignal,
): Promise<string | undefined> {
  for (const type of WORKLOAD_TYPES) {
    const { items } = await api.list(type, { namespace, signal });
    const [first] = items;
    if (first !== undefined) return `${type.kind} ${first.metadata.name}`;
  }
  return undefined;
}
