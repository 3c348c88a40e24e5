/**
 * What a Workspace has in the cluster: a namespace for its API keys and templates, in which nothing runs, and our own right to
 * write the Secrets of the keys there.
 */
import { LABEL_MANAGED_BY, LABEL_WORKSPACE, MANAGED_BY } from '../../api/labels.js';
import type { ObjectMeta } from '../../api/meta.js';
import { workspaceNamespace } from '../../api/names.js';
import { Workspaces } from '../../api/v1alpha1/workspace.js';
import type { Workspace } from '../../api/v1alpha1/workspace.js';
import type { Namespace, NetworkPolicy, ResourceQuota, RoleBinding } from '../../kube/core-types.js';
import { controllerReference } from '../../kube/owner-references.js';
import { DEFAULT_DENY, DEFAULT_DENY_POLICY, POD_SECURITY_LABELS, RESOURCE_QUOTA } from '../common/hardening.js';
import type { NamespaceOwner } from '../common/namespace.js';

/**
 * The controller may touch Secrets in workspace namespaces and nowhere else: the chart ships this ClusterRole (get,
 * create, update of secrets) unbound, and lets the controller `bind` it, by this name only.
 */
export const WORKSPACE_SECRETS_ROLE = 'boxwright-workspace-secrets';
export const SECRETS_ROLE_BINDING = 'boxwright-controller';

/** The service account of this process. */
export interface ControllerIdentity {
  serviceAccount: string;
  namespace: string;
}

function workspaceLabels(workspace: Workspace): Record<string, string> {
  return { [LABEL_MANAGED_BY]: MANAGED_BY, [LABEL_WORKSPACE]: workspace.metadata.name };
}

/** Name and UID under which a Workspace owns its namespace. */
export function ownerOf(workspace: Workspace): NamespaceOwner {
  return { name: workspace.metadata.name, uid: workspace.metadata.uid ?? '', label: LABEL_WORKSPACE };
}

export function desiredNamespace(workspace: Workspace): Namespace {
  return {
    apiVersion: 'v1',
    kind: 'Namespace',
    metadata: {
      name: workspaceNamespace(workspace.metadata.name),
      labels: { ...workspaceLabels(workspace), ...POD_SECURITY_LABELS },
      ownerReferences: [controllerReference(Workspaces, workspace)],
    },
  };
}

function metadataOf(workspace: Workspace, name: string): ObjectMeta {
  return {
    name,
    namespace: workspaceNamespace(workspace.metadata.name),
    labels: workspaceLabels(workspace),
    ownerReferences: [controllerReference(Workspaces, workspace)],
  };
}

/** No connection to or from whatever runs there all the same. */
export function desiredNetworkPolicy(workspace: Workspace): NetworkPolicy {
  return {
    apiVersion: 'networking.k8s.io/v1',
    kind: 'NetworkPolicy',
    metadata: metadataOf(workspace, DEFAULT_DENY_POLICY),
    spec: DEFAULT_DENY,
  };
}

/** Room for no pod, no volume and no Service. */
export function desiredQuota(workspace: Workspace): ResourceQuota {
  return {
    apiVersion: 'v1',
    kind: 'ResourceQuota',
    metadata: metadataOf(workspace, RESOURCE_QUOTA),
    spec: { hard: { pods: '0', persistentvolumeclaims: '0', services: '0' } },
  };
}

export function desiredRoleBinding(workspace: Workspace, identity: ControllerIdentity): RoleBinding {
  return {
    apiVersion: 'rbac.authorization.k8s.io/v1',
    kind: 'RoleBinding',
    metadata: metadataOf(workspace, SECRETS_ROLE_BINDING),
    roleRef: { apiGroup: 'rbac.authorization.k8s.io', kind: 'ClusterRole', name: WORKSPACE_SECRETS_ROLE },
    subjects: [{ kind: 'ServiceAccount', name: identity.serviceAccount, namespace: identity.namespace }],
  };
}
