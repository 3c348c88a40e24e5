/** Projections of AgentTemplates; only API pods watch them. */
import { isGitOps } from '../api/gitops.js';
import { workspaceOfNamespace } from '../api/names.js';
import { createdAtOf, isoTime } from '../api/time.js';
import { AgentTemplates } from '../api/v1alpha1/agent-template.js';
import type { AgentTemplate, TemplateContent } from '../api/v1alpha1/agent-template.js';
import type { InformerOptions } from '../kube/types.js';
import { BY_WORKSPACE } from './indexes.js';
import { identityOf } from './meta.js';
import type { Identity } from './meta.js';

/** Templates that every workspace sees, by {@link LISTED}. */
export const BY_LISTING = 'listing';
/** The one value of the index BY_LISTING. */
export const LISTED = 'listed';

/** A template without the contents of its versions. */
export interface TemplateProjection extends Identity {
  namespace: string;
  workspace: string;
  displayName: string;
  description: string;
  category: string;
  tags: readonly string[];
  requiredEvals: readonly string[];
  draft: TemplateContent;
  published: AgentTemplate['spec']['published'];
  listed: boolean;
  /** Installs that are counted; src/services/templates/install-count.ts knows all of them. */
  installs: number;
  /** UIDs of the first agents of those that were counted last. */
  counting: readonly string[];
  gitOps: boolean;
  createdAt: string;
  updatedAt: string;
}

export function projectTemplate({ metadata, spec, status }: AgentTemplate): TemplateProjection {
  const namespace = metadata.namespace ?? '';
  const createdAt = createdAtOf(metadata);
  return {
    ...identityOf(metadata),
    namespace,
    workspace: workspaceOfNamespace(namespace) ?? '',
    displayName: spec.name,
    description: spec.description,
    category: spec.category,
    tags: spec.tags,
    requiredEvals: spec.requiredEvals ?? [],
    draft: spec.draft,
    published: spec.published,
    listed: spec.listed,
    installs: status?.installs ?? 0,
    counting: (status?.counting ?? []).map(({ uid }) => uid),
    gitOps: isGitOps(metadata),
    createdAt,
    updatedAt: isoTime(spec.updatedAt ?? createdAt),
  };
}

export const templateInformer: InformerOptions<AgentTemplate, TemplateProjection> = {
  type: AgentTemplates,
  project: projectTemplate,
  indexes: {
    [BY_WORKSPACE]: (template) => [template.workspace],
    [BY_LISTING]: (template) => (template.listed ? [LISTED] : []),
  },
};
