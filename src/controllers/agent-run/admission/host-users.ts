/** Whether run pods get user namespaces of their own, as the field `hostUsers` of their pods. Pure. */
import type { Box } from '../../../api/v1alpha1/box.js';
import type { NodeProjection } from '../../../projections/node.js';

/**
 * `false`: users of the pod are nobody on the node. Undefined: the default of Kubernetes. Unless the Box decides it, every
 * node must be able to, since nobody knows where the pod will be; what another runtime can do is not known here, and
 * gVisor and Kata have walls of their own.
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
