/** Projections of AgentMemories: the notes of agents. */
import { createdAtOf, isoTime } from '../api/time.js';
import { AgentMemories } from '../api/v1alpha1/agent-memory.js';
import type { AgentMemory } from '../api/v1alpha1/agent-memory.js';
import type { InformerOptions } from '../kube/types.js';
import { CHILD_INDEXES, agentChildInformer } from './agent-child.js';
import { identityOf } from './meta.js';
import type { Identity } from './meta.js';

interface Note extends Identity {
  namespace: string;
  agent: string;
  text: string;
  /** RFC 3339. */
  updatedAt: string;
}

/** For the tools. */
export interface ApiMemory extends Note {
  createdAt: string;
}

export function projectApiMemory({ metadata, spec }: AgentMemory): ApiMemory {
  const createdAt = createdAtOf(metadata);
  return {
    ...identityOf(metadata),
    namespace: metadata.namespace ?? '',
    agent: spec.agent,
    text: spec.text,
    createdAt,
    updatedAt: isoTime(spec.updatedAt ?? createdAt),
  };
}

export const apiMemoryInformer: InformerOptions<AgentMemory, ApiMemory> = {
  type: AgentMemories,
  project: projectApiMemory,
  indexes: CHILD_INDEXES,
};

/** For the agent itself. */
export interface GatewayMemory extends Note {
  untrusted: boolean;
}

export function projectGatewayMemory({ metadata, spec }: AgentMemory): GatewayMemory {
  return {
    namespace: metadata.namespace ?? '',
    name: metadata.name,
    uid: metadata.uid ?? '',
    agent: spec.agent,
    text: spec.text,
    updatedAt: spec.updatedAt ?? metadata.creationTimestamp ?? '',
    untrusted: spec.untrusted === true,
    deleting: metadata.deletionTimestamp !== undefined,
  };
}

export const gatewayMemoryInformer: InformerOptions<AgentMemory, GatewayMemory> = {
  type: AgentMemories,
  project: projectGatewayMemory,
  indexes: CHILD_INDEXES,
};

export const controllerMemoryInformer = agentChildInformer(AgentMemories);
