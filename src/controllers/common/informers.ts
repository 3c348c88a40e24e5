/**
 * The informers that the base controllers read, as options for createInformer: what is kept of each object and how it
 * is indexed. Texts that no controller needs (souls, bodies) are dropped: memory is per projection.
 */
import { LABEL_MANAGED_BY, MANAGED_BY } from '../../api/labels.js';
import { objectKey } from '../../api/meta.js';
import type { KubeObject, ObjectMeta, ResourceType } from '../../api/meta.js';
import { AgentMemories } from '../../api/v1alpha1/agent-memory.js';
import type { AgentMemory } from '../../api/v1alpha1/agent-memory.js';
import { AgentSchedules } from '../../api/v1alpha1/agent-schedule.js';
import type { AgentSchedule } from '../../api/v1alpha1/agent-schedule.js';
import { AgentSkills, SKILL_PAGE_SIZE } from '../../api/v1alpha1/agent-skill.js';
import type { AgentSkill } from '../../api/v1alpha1/agent-skill.js';
import { AgentTriggers } from '../../api/v1alpha1/agent-trigger.js';
import type { AgentTrigger } from '../../api/v1alpha1/agent-trigger.js';
import { Agents } from '../../api/v1alpha1/agent.js';
import type { Agent } from '../../api/v1alpha1/agent.js';
import { APIKeys } from '../../api/v1alpha1/api-key.js';
import type { APIKey } from '../../api/v1alpha1/api-key.js';
import { Boxes } from '../../api/v1alpha1/box.js';
import type { Box } from '../../api/v1alpha1/box.js';
import { Connectors } from '../../api/v1alpha1/connector.js';
import type { Connector } from '../../api/v1alpha1/connector.js';
import { Workspaces } from '../../api/v1alpha1/workspace.js';
import type { Workspace } from '../../api/v1alpha1/workspace.js';
import { LimitRanges, Namespaces, NetworkPolicies, ResourceQuotas, ServiceAccounts } from '../../kube/core-types.js';
import type { InformerOptions } from '../../kube/types.js';
import { RoleBindings } from './role-bindings.js';

/** Names of the indexes. Values: a namespace, `<namespace>/<agent>`, the name of a Workspace. */
export const BY_NAMESPACE = 'namespace';
export const BY_AGENT = 'agent';
export const BY_WORKSPACE = 'workspace';

/** An Agent without its texts. */
export type AgentView = Omit<Agent, 'spec'> & {
  spec: Pick<Agent['spec'], 'handle' | 'name' | 'provider' | 'model' | 'stepLimit' | 'paused' | 'budget'> & {
    tools: Pick<Agent['spec']['tools'], 'browser'>;
  };
};

/** An AgentTrigger without its instruction. */
export type TriggerView = Omit<AgentTrigger, 'spec'> & {
  spec: Pick<AgentTrigger['spec'], 'agent' | 'name' | 'enabled' | 'tokenId' | 'keyId'>;
};

/** What the base controllers need of an AgentRun; its informer carries the indexes BY_NAMESPACE and BY_AGENT. */
export interface RunView {
  metadata: ObjectMeta;
  spec: { agent: string };
}

/** An object of an agent that matters here only because it goes with the agent. */
export interface AgentChildView {
  metadata: ObjectMeta;
  spec: { agent: string };
}

/** Server-side bookkeeping that nobody here reads and that doubles the size of an object. */
export function withoutManagedFields<T extends KubeObject>(object: T): T {
  const { managedFields: _dropped, ...metadata } = object.metadata as ObjectMeta & { managedFields?: unknown };
  return { ...object, metadata };
}

const byNamespace = (object: Pick<KubeObject, 'metadata'>): readonly string[] =>
  object.metadata.namespace === undefined ? [] : [object.metadata.namespace];

/** Value of the index BY_AGENT. */
export function agentIndexValue(namespace: string | undefined, agent: string): string {
  return objectKey({ name: agent, ...(namespace === undefined ? {} : { namespace }) });
}

export const workspaceInformer: InformerOptions<Workspace, Workspace> = {
  type: Workspaces,
  project: withoutManagedFields,
};

export const boxInformer: InformerOptions<Box, Box> = {
  type: Boxes,
  project: withoutManagedFields,
  indexes: { [BY_WORKSPACE]: (box) => [box.spec.workspace] },
};

export const apiKeyInformer: InformerOptions<APIKey, APIKey> = {
  type: APIKeys,
  project: withoutManagedFields,
  indexes: { [BY_NAMESPACE]: byNamespace },
};

export const agentInformer: InformerOptions<Agent, AgentView> = {
  type: Agents,
  project: (agent) => {
    const { handle, name, provider, model, stepLimit, paused, budget, tools } = agent.spec;
    const optional = {
      ...(handle === undefined ? {} : { handle }),
      ...(model === undefined ? {} : { model }),
      ...(stepLimit === undefined ? {} : { stepLimit }),
      ...(budget === undefined ? {} : { budget }),
    };
    const view = {
      ...withoutManagedFields(agent),
      spec: { name, provider, paused, tools: { browser: tools.browser }, ...optional },
    };
    if (agent.status === undefined) return view;
    // Old system prompts are large, and nobody but people reads them.
    const { revisions: _revisions, ...status } = agent.status;
    return { ...view, status };
  },
  indexes: { [BY_NAMESPACE]: byNamespace },
};

export const triggerInformer: InformerOptions<AgentTrigger, TriggerView> = {
  type: AgentTriggers,
  project: (trigger) => {
    const { agent, name, enabled, tokenId, keyId } = trigger.spec;
    const optional = { ...(tokenId === undefined ? {} : { tokenId }), ...(keyId === undefined ? {} : { keyId }) };
    return { ...withoutManagedFields(trigger), spec: { agent, name, enabled, ...optional } };
  },
  indexes: {
    [BY_NAMESPACE]: byNamespace,
    [BY_AGENT]: (trigger) => [agentIndexValue(trigger.metadata.namespace, trigger.spec.agent)],
  },
};

/** Whole: the instruction is what a tick sends. */
export const scheduleInformer: InformerOptions<AgentSchedule, AgentSchedule> = {
  type: AgentSchedules,
  project: withoutManagedFields,
  indexes: {
    [BY_NAMESPACE]: byNamespace,
    [BY_AGENT]: (schedule) => [agentIndexValue(schedule.metadata.namespace, schedule.spec.agent)],
  },
};

function agentChildInformer<T extends KubeObject & { spec: { agent: string } }>(
  type: ResourceType<T>,
): InformerOptions<T, AgentChildView> {
  return {
    type,
    project: (child) => ({ metadata: withoutManagedFields(child).metadata, spec: { agent: child.spec.agent } }),
    indexes: {
      [BY_NAMESPACE]: byNamespace,
      [BY_AGENT]: (child) => [agentIndexValue(child.metadata.namespace, child.spec.agent)],
    },
  };
}

export const skillInformer = { ...agentChildInformer<AgentSkill>(AgentSkills), pageSize: SKILL_PAGE_SIZE };
export const memoryInformer = agentChildInformer<AgentMemory>(AgentMemories);

export const connectorInformer: InformerOptions<Connector, Connector> = {
  type: Connectors,
  project: withoutManagedFields,
};

/** Only objects with our label: an object that lost it looks missing, and is found by its name and repaired. */
function managedInformer<T extends KubeObject>(type: ResourceType<T>): InformerOptions<T, T> {
  return { type, labelSelector: `${LABEL_MANAGED_BY}=${MANAGED_BY}`, project: withoutManagedFields };
}

export const namespaceInformer = managedInformer(Namespaces);
export const serviceAccountInformer = managedInformer(ServiceAccounts);
export const networkPolicyInformer = managedInformer(NetworkPolicies);
export const resourceQuotaInformer = managedInformer(ResourceQuotas);
export const limitRangeInformer = managedInformer(LimitRanges);
export const roleBindingInformer = managedInformer(RoleBindings);
