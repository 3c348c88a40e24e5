/** Projections of AgentSkills: never the contents, a skill may have 1 MiB. */
import { slugOfChildName } from '../api/names.js';
import { createdAtOf, isoTime } from '../api/time.js';
import { AgentSkills, SKILL_PAGE_SIZE } from '../api/v1alpha1/agent-skill.js';
import type { AgentSkill } from '../api/v1alpha1/agent-skill.js';
import type { InformerOptions } from '../kube/types.js';
import { CHILD_INDEXES, agentChildInformer, projectApiChild } from './agent-child.js';
import type { ApiChild } from './agent-child.js';

/** For the tools. */
export interface ApiSkill extends ApiChild {
  files: readonly { path: string; bytes: number }[];
  updatedAt: string;
}

export function projectApiSkill(skill: AgentSkill): ApiSkill {
  return {
    ...projectApiChild(skill),
    files: skill.spec.files.map(({ path, bytes }) => ({ path, bytes })),
    updatedAt: isoTime(skill.spec.updatedAt ?? createdAtOf(skill.metadata)),
  };
}

export const apiSkillInformer: InformerOptions<AgentSkill, ApiSkill> = {
  type: AgentSkills,
  project: projectApiSkill,
  indexes: CHILD_INDEXES,
  pageSize: SKILL_PAGE_SIZE,
};

/** What an agent is told of its skills. */
export type GatewaySkill = Pick<ApiSkill, 'namespace' | 'agent' | 'slug' | 'description'>;

export function projectGatewaySkill({ metadata, spec }: AgentSkill): GatewaySkill {
  return {
    namespace: metadata.namespace ?? '',
    agent: spec.agent,
    slug: slugOfChildName(metadata.name) ?? '',
    description: spec.description,
  };
}

export const gatewaySkillInformer: InformerOptions<AgentSkill, GatewaySkill> = {
  type: AgentSkills,
  project: projectGatewaySkill,
  indexes: CHILD_INDEXES,
};

export const controllerSkillInformer = { ...agentChildInformer(AgentSkills), pageSize: SKILL_PAGE_SIZE };
