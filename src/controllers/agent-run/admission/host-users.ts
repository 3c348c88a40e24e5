/** Whether run pods get user namespaces of their own, as the field `hostUsers` of their pods. Pure. */
import type { Box } from '../../../api/v1alpha1/box.js';
import type { NodeProjection } from '../../../projections/node.js';

/**
 * `false`: users of the pod have no rights on the node. Undefined: the default of Kubernetes. Unless the Box decides, every
 * node must support it, since the pod may land on any of them. What other runtimes support is not known here; gVisor and
 * Kata isolate pods in their own way.
 */
export function hostUsersOf(
  { hostUsers, runtimeClassName }: Pick<Box['spec'], 'hostUsers' | 'runtimeClassName'>,
  nodes: Iterable<Pick<NodeProjection, 'userNamespaces'>>,
): false | undefined {
  if (hostUsers !== undefined) return hostUsers ? undefined : false;
  const all = [...nodes];
  const able = runtimeClassName === undefined && all.length > 0 && all.every(({ userNamespaces }) => userNamespaces);
  return able ? false : undefined;
}
