/**
 * Informers of the built-in objects that controllers make for Workspaces and Boxes: whole, for they are compared with what
 * they should be. Only objects with our label: one that lost it looks missing, and is found by its name and repaired.
 */
import { LABEL_MANAGED_BY, MANAGED_BY } from '../api/labels.js';
import type { KubeObject, ResourceType } from '../api/meta.js';
import {
  LimitRanges,
  Namespaces,
  NetworkPolicies,
  ResourceQuotas,
  RoleBindings,
  ServiceAccounts,
} from '../kube/core-types.js';
import type { InformerOptions } from '../kube/types.js';
import { withoutManagedFields } from './meta.js';

function managedInformer<T extends KubeObject>(type: ResourceType<T>): InformerOptions<T, T> {
  return { type, labelSelector: `${LABEL_MANAGED_BY}=${MANAGED_BY}`, project: withoutManagedFields };
}

export const namespaceInformer = managedInformer(Namespaces);
export const serviceAccountInformer = managedInformer(ServiceAccounts);
export const networkPolicyInformer = managedInformer(NetworkPolicies);
export const resourceQuotaInformer = managedInformer(ResourceQuotas);
export const limitRangeInformer = managedInformer(LimitRanges);
export const roleBindingInformer = managedInformer(RoleBindings);
