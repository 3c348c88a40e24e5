/** Projections of Agents. Old system prompts (status.revisions) are large, and nobody but people reads them. */
import { usesCredentials } from '../api/credentials.js';
import { isGitOps } from '../api/gitops.js';
import { uncountedInstallOf } from '../api/install-count.js';
import { installMarkOf } from '../api/installing.js';
import type { InstallMark } from '../api/installing.js';
import type { ObjectMeta } from '../api/meta.js';
import { boxOfNamespace } from '../api/names.js';
import { createdAtOf } from '../api/time.js';
import { Agents } from '../api/v1alpha1/agent.js';
import type { Agent } from '../api/v1alpha1/agent.js';
import type { InformerOptions } from '../kube/types.js';
import { outputSchemaText } from '../run/output-schema.js';
import { BY_NAMESPACE, namespaceValues } from './indexes.js';
import { identityOf, withoutManagedFields } from './meta.js';
import type { Identity } from './meta.js';

/** Agents by the name of their Box. */
export const BY_BOX = 'box';
/** First agents of installs that are not counted yet, by the UID of the template. */
export const UNCOUNTED_BY_TEMPLATE = 'uncounted';

/** For the tools: without texts, but for the description. */
export interface ApiAgent extends Identity {
  namespace: string;
  box: string;
  handle: string;
  displayName: string;
  description: string;
  provider: string;
  model: string | undefined;
  /** Undefined until the controller has said whether the agent holds a slot. */
  active: boolean | undefined;
  inactiveReason: string | undefined;
  /** Slugs, as they stand in the spec. */
  connectors: readonly string[];
  /** Names and hosts of the agent's Secret, as the gateway saw them. */
  presentSecrets: readonly string[];
  secretHosts: readonly string[];
  gitOps: boolean;
  createdAt: string;
  /** Set while the install that made the agent is not committed: `isCommitted` of src/services/scope.ts asks for it. */
  install: InstallMark | undefined;
  /** UID of the template that does not count yet that it was installed with this agent. */
  uncounted: string | undefined;
}

export function projectApiAgent(agent: Agent): ApiAgent {
  const namespace = agent.metadata.namespace ?? '';
  return {
    ...identityOf(agent.metadata),
    namespace,
    box: boxOfNamespace(namespace) ?? '',
    handle: agent.spec.handle ?? agent.metadata.name,
    displayName: agent.spec.name,
    description: agent.spec.description ?? '',
    provider: agent.spec.provider,
    model: agent.spec.model,
    active: agent.status?.active,
    inactiveReason: agent.status?.inactiveReason,
    connectors: agent.spec.connectors ?? [],
    presentSecrets: agent.status?.presentSecrets ?? [],
    secretHosts: agent.status?.secretHosts ?? [],
    gitOps: isGitOps(agent.metadata),
    createdAt: createdAtOf(agent.metadata),
    install: installMarkOf(agent.metadata),
    uncounted: uncountedInstallOf(agent.metadata)?.uid,
  };
}

export const apiAgentInformer: InformerOptions<Agent, ApiAgent> = {
  type: Agents,
  project: projectApiAgent,
  indexes: {
    [BY_BOX]: (agent) => [agent.box],
    [UNCOUNTED_BY_TEMPLATE]: ({ uncounted }) => (uncounted === undefined ? [] : [uncounted]),
  },
};

/** What a run needs to know of its agent. */
export interface GatewayAgent {
  namespace: string;
  name: string;
  uid: string;
  /** False when it holds no slot: its runs would only wait. */
  active: boolean;
  deleting: boolean;
  /** The install that made it is not committed: no other agent sees it. */
  installing: boolean;
  /** Its source of truth is a repository: the agent cannot change itself. */
  gitOps: boolean;
  /** JSON of spec.outputSchema, or why it cannot be used: no API server says how large or how deep it may be. */
  outputSchema: ReturnType<typeof outputSchemaText> | undefined;
  spec: Pick<
    Agent['spec'],
    | 'handle'
    | 'name'
    | 'description'
    | 'soul'
    | 'provider'
    | 'model'
    | 'temperature'
    | 'stepLimit'
    | 'reasoning'
    | 'maxOutputTokens'
    | 'fallbackModels'
    | 'compactAt'
    | 'tools'
    | 'selfImprovement'
    | 'approvals'
    | 'mcpServers'
    | 'connectors'
  >;
}

export function projectGatewayAgent(agent: Agent): GatewayAgent {
  const { setup: _setup, paused: _paused, outputSchema, ...spec } = agent.spec;
  return {
    namespace: agent.metadata.namespace ?? '',
    name: agent.metadata.name,
    uid: agent.metadata.uid ?? '',
    active: agent.status?.active !== false,
    deleting: agent.metadata.deletionTimestamp !== undefined,
    installing: installMarkOf(agent.metadata) !== undefined,
    gitOps: isGitOps(agent.metadata),
    outputSchema: outputSchema === undefined ? undefined : outputSchemaText(outputSchema),
    spec,
  };
}

export const gatewayAgentInformer: InformerOptions<Agent, GatewayAgent> = {
  type: Agents,
  project: projectGatewayAgent,
  indexes: { [BY_NAMESPACE]: (agent) => [agent.namespace] },
};

/** What decides whether an agent has credentials, and what its status says of them: one gateway watches it apart. */
export interface AgentCredentials {
  metadata: Pick<ObjectMeta, 'name' | 'namespace' | 'uid' | 'resourceVersion' | 'deletionTimestamp'>;
  usesCredentials: boolean;
  presentSecrets: readonly string[];
  secretHosts: readonly string[];
}

export const agentCredentialsInformer: InformerOptions<Agent, AgentCredentials> = {
  type: Agents,
  project: ({ metadata, spec, status }) => {
    const { name, namespace = '', uid = '', resourceVersion = '', deletionTimestamp } = metadata;
    return {
      metadata: {
        name,
        namespace,
        uid,
        resourceVersion,
        ...(deletionTimestamp === undefined ? {} : { deletionTimestamp }),
      },
      usesCredentials: usesCredentials(spec),
      presentSecrets: status?.presentSecrets ?? [],
      secretHosts: status?.secretHosts ?? [],
    };
  },
};

/** An Agent without its texts. */
export type ControllerAgent = Omit<Agent, 'spec'> & {
  spec: Pick<
    Agent['spec'],
    'handle' | 'name' | 'provider' | 'model' | 'stepLimit' | 'paused' | 'budget' | 'retries'
  > & {
    tools: Pick<Agent['spec']['tools'], 'browser'>;
  };
};

export function projectControllerAgent(agent: Agent): ControllerAgent {
  const { handle, name, provider, model, stepLimit, paused, budget, retries, tools } = agent.spec;
  const optional = {
    ...(handle === undefined ? {} : { handle }),
    ...(model === undefined ? {} : { model }),
    ...(stepLimit === undefined ? {} : { stepLimit }),
    ...(budget === undefined ? {} : { budget }),
    ...(retries === undefined ? {} : { retries }),
  };
  const projected = {
    ...withoutManagedFields(agent),
    spec: { name, provider, paused, tools: { browser: tools.browser }, ...optional },
  };
  if (agent.status === undefined) return projected;
  const { revisions: _revisions, ...status } = agent.status;
  return { ...projected, status };
}

export const controllerAgentInformer: InformerOptions<Agent, ControllerAgent> = {
  type: Agents,
  project: projectControllerAgent,
  indexes: { [BY_NAMESPACE]: namespaceValues },
};
