/** Projections of Workspaces. */
import { Workspaces } from '../api/v1alpha1/workspace.js';
import type { Workspace } from '../api/v1alpha1/workspace.js';
import type { InformerOptions } from '../kube/types.js';
import { identityOf, withoutManagedFields } from './meta.js';
import type { Identity } from './meta.js';

/** For the tools. */
export interface ApiWorkspace extends Identity {
  expertSandbox: boolean;
}

export function projectApiWorkspace(workspace: Workspace): ApiWorkspace {
  return { ...identityOf(workspace.metadata), expertSandbox: workspace.spec.expertSandbox };
}

export const apiWorkspaceInformer: InformerOptions<Workspace, ApiWorkspace> = {
  type: Workspaces,
  project: projectApiWorkspace,
};

/** Whole: few, and reconciled. */
export const controllerWorkspaceInformer: InformerOptions<Workspace, Workspace> = {
  type: Workspaces,
  project: withoutManagedFields,
};
