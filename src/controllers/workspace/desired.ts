/** What a Workspace has in the cluster: a namespace for its API keys, and our own right to write their Secrets there. */
import { LABEL_MANAGED_BY, LABEL_WORKSPACE, MANAGED_BY } from '../../api/labels.js';
import { workspaceNamespace } from '../../api/names.js';
import { Workspaces } from '../../api/v1alpha1/workspace.js';
import type { Workspace } from '../../api/v1alpha1/workspace.js';
import type { Namespace, RoleBinding } from '../../kube/core-types.js';
import { controllerReference } from '../../kube/owner-references.js';
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
  return { name: workspace.metadata.name, uid: workspace.metadata.uid ?? '' };
}

export function desiredNamespace(workspace: Workspace): Namespace {
  return {
    apiVersion: 'v1',
    kind: 'Namespace',
    metadata: {
      name: workspaceNamespace(workspace.metadata.name),
      labels: workspaceLabels(workspace),
      ownerReferences: [controllerReference(Workspaces, workspace)],
    },
  };
}

export function desiredRoleBinding(workspace: Workspace, identity: ControllerIdentity): RoleBinding {
  return {
    apiVersion: 'rbac.authorization.k8s.io/v1',
    kind: 'RoleBinding',
    metadata: {
      name: SECRETS_ROLE_BINDING,
      namespace: workspaceNamespace(workspace.metadata.name),
      labels: workspaceLabels(workspace),
      ownerReferences: [controllerReference(Workspaces, workspace)],
    },
    roleRef: { apiGroup: 'rbac.authorization.k8s.io', kind: 'ClusterRole', name: WORKSPACE_SECRETS_ROLE },
    subjects: [{ kind: 'ServiceAccount', name: identity.serviceAccount, namespace: identity.namespace }],
  };
}
