/** The built-in kind RoleBinding, with only the fields that we use. */
import type { KubeObject, ResourceType } from '../../api/meta.js';

export interface RoleBinding extends KubeObject {
  roleRef: { apiGroup: string; kind: string; name: string };
  subjects: { kind: string; name: string; namespace: string }[];
}

export const RoleBindings: ResourceType<RoleBinding> = {
  group: 'rbac.authorization.k8s.io',
  version: 'v1',
  kind: 'RoleBinding',
  plural: 'rolebindings',
  namespaced: true,
};
