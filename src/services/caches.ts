/** The informers of an API pod by kind; reading them never costs a request. */
import type { Informer, InformerFactory } from '../kube/types.js';
import { apiAgentInformer } from '../projections/agent.js';
import type { ApiAgent } from '../projections/agent.js';
import { apiMemoryInformer } from '../projections/agent-memory.js';
import type { ApiMemory } from '../projections/agent-memory.js';
import { apiRunInformer } from '../projections/agent-run.js';
import type { ApiRun } from '../projections/agent-run.js';
import { apiScheduleInformer } from '../projections/agent-schedule.js';
import type { ApiSchedule } from '../projections/agent-schedule.js';
import { apiSkillInformer } from '../projections/agent-skill.js';
import type { ApiSkill } from '../projections/agent-skill.js';
import { templateInformer } from '../projections/agent-template.js';
import type { TemplateProjection } from '../projections/agent-template.js';
import { apiTriggerInformer } from '../projections/agent-trigger.js';
import type { ApiTrigger } from '../projections/agent-trigger.js';
import { apiKeyInformer } from '../projections/api-key.js';
import type { ApiKeyProjection } from '../projections/api-key.js';
import { apiBoxInformer } from '../projections/box.js';
import type { ApiBox } from '../projections/box.js';
import { apiConnectorInformer } from '../projections/connector.js';
import type { ApiConnector } from '../projections/connector.js';
import { apiWorkspaceInformer } from '../projections/workspace.js';
import type { ApiWorkspace } from '../projections/workspace.js';

/** Every informer of the API pod by the kind that it watches. */
export interface ApiCaches {
  Workspace: Informer<ApiWorkspace>;
  Box: Informer<ApiBox>;
  Agent: Informer<ApiAgent>;
  AgentTrigger: Informer<ApiTrigger>;
  AgentSchedule: Informer<ApiSchedule>;
  AgentSkill: Informer<ApiSkill>;
  AgentMemory: Informer<ApiMemory>;
  AgentRun: Informer<ApiRun>;
  APIKey: Informer<ApiKeyProjection>;
  Connector: Informer<ApiConnector>;
  AgentTemplate: Informer<TemplateProjection>;
}
export type CachedKind = keyof ApiCaches;

/** Builds all informers; the caller starts and stops them. */
export function createApiCaches(create: InformerFactory): ApiCaches {
  return {
    Workspace: create(apiWorkspaceInformer),
    Box: create(apiBoxInformer),
    Agent: create(apiAgentInformer),
    AgentTrigger: create(apiTriggerInformer),
    AgentSchedule: create(apiScheduleInformer),
    AgentSkill: create(apiSkillInformer),
    AgentMemory: create(apiMemoryInformer),
    AgentRun: create(apiRunInformer),
    APIKey: create(apiKeyInformer),
    Connector: create(apiConnectorInformer),
    AgentTemplate: create(templateInformer),
  };
}
