/** The projection of nodes: readiness and what the runtime can do, for the status of a node is written every few minutes. */
import { millisOf } from '../api/time.js';
import { Nodes } from '../kube/core-types.js';
import type { KubeNode } from '../kube/core-types.js';
import type { InformerOptions } from '../kube/types.js';

/** A node, as the controller judges the pods on it. */
export interface NodeProjection {
  name: string;
  ready: boolean;
  /** Since when it is as it is. */
  since: number;
  /** What it, or the control plane, says about it. */
  message: string;
  /** Whether its default runtime gives pods user namespaces of their own. */
  userNamespaces: boolean;
}

export function projectNode(node: KubeNode): NodeProjection {
  const ready = node.status?.conditions?.find(({ type }) => type === 'Ready');
  const runtime = node.status?.runtimeHandlers?.find(({ name = '' }) => name === '');
  return {
    name: node.metadata.name,
    ready: ready?.status === 'True',
    since: millisOf(ready?.lastTransitionTime) ?? Date.parse(node.metadata.creationTimestamp ?? ''),
    message: ready?.message ?? '',
    userNamespaces: runtime?.features?.userNamespaces === true,
  };
}

export const nodeInformer: InformerOptions<KubeNode, NodeProjection> = { type: Nodes, project: projectNode };
