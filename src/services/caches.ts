/**
 * The informers of an API pod with their indexes, and the narrow readers on them. Reading them never costs a request;
 * the few live reads (a watch that is behind, an id that is not there) stand here too and say so.
 */
import { isInstalled } from '../api/installing.js';
import { boxNamespace, childName } from '../api/names.js';
import type { AgentRef } from '../api/names.js';
import { AgentTriggers } from '../api/v1alpha1/agent-trigger.js';
import type { TriggerMethod } from '../api/v1alpha1/agent-trigger.js';
import { Agents } from '../api/v1alpha1/agent.js';
import { orUndefined } from '../kube/errors.js';
import type { Cache, Informer, InformerFactory, KubeApi } from '../kube/types.js';
import { apiAgentInformer, projectApiAgent } from '../projections/agent.js';
import type { ApiAgent } from '../projections/agent.js';
import { apiMemoryInformer } from '../projections/agent-memory.js';
import type { ApiMemory } from '../projections/agent-memory.js';
import { BY_SESSION, apiRunInformer } from '../projections/agent-run.js';
import type { ApiRun } from '../projections/agent-run.js';
import { apiScheduleInformer } from '../projections/agent-schedule.js';
import type { ApiSchedule } from '../projections/agent-schedule.js';
import { apiSkillInformer } from '../projections/agent-skill.js';
import type { ApiSkill } from '../projections/agent-skill.js';
import { templateInformer } from '../projections/agent-template.js';
import type { TemplateProjection } from '../projections/agent-template.js';
import { apiTriggerInformer, projectApiTrigger } from '../projections/agent-trigger.js';
import type { ApiTrigger } from '../projections/agent-trigger.js';
import { apiKeyInformer } from '../projections/api-key.js';
import type { ApiKeyProjection } from '../projections/api-key.js';
import { apiBoxInformer } from '../projections/box.js';
import type { ApiBox } from '../projections/box.js';
import { apiConnectorInformer } from '../projections/connector.js';
import type { ApiConnector } from '../projections/connector.js';
import { apiWorkspaceInformer } from '../projections/workspace.js';
import type { ApiWorkspace } from '../projections/workspace.js';
import { sessionKey } from '../run/session/key.js';

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

/** What a call of a trigger's URL needs to know. */
export interface TriggerTarget {
  agent: AgentRef;
  agentUid: string;
  slug: string;
  uid: string;
  tokenId: string | undefined;
  keyId: string | undefined;
  enabled: boolean;
  methods: readonly TriggerMethod[];
  dedupeHeader: string | undefined;
  body: string;
}

/** Finds triggers for the public URL. */
export interface TriggerReader {
  /**
   * The trigger with its agent; undefined when trigger, agent or Box is not there or is being deleted. No request while
   * the watches are healthy; live GETs while one is behind its bound.
   */
  find(agent: AgentRef, slug: string, signal: AbortSignal): Promise<TriggerTarget | undefined>;
}

type TriggerCaches = Pick<ApiCaches, 'Box' | 'Agent' | 'AgentTrigger'>;

export interface TriggerReaderDeps {
  caches: TriggerCaches;
  api: Pick<KubeApi, 'get'>;
  /** Makes the key of a trigger known that was signed by a new key (src/services/triggers/keyring.ts). */
  ensureKey: (keyId: string | undefined) => Promise<void>;
}

export function createTriggerReader({ caches, api, ensureKey }: TriggerReaderDeps): TriggerReader {
  return {
    async find(ref, slug, signal) {
      const namespace = boxNamespace(ref.box);
      const healthy = caches.Agent.isHealthy() && caches.AgentTrigger.isHealthy();
      if (healthy) {
        const trigger = caches.AgentTrigger.get(`${namespace}/${childName(ref.agent, slug)}`);
        await ensureKey(trigger?.keyId);
        return target(caches, caches.Agent.get(`${namespace}/${ref.agent}`), trigger);
      }
      const [agent, trigger] = await Promise.all([
        orUndefined(api.get(Agents, { namespace, name: ref.agent }, { signal })),
        orUndefined(api.get(AgentTriggers, { namespace, name: childName(ref.agent, slug) }, { signal })),
      ]);
      await ensureKey(trigger?.spec.keyId);
      return target(
        caches,
        agent === undefined ? undefined : projectApiAgent(agent),
        trigger === undefined ? undefined : projectApiTrigger(trigger),
      );
    },
  };
}

function target(
  caches: TriggerCaches,
  agent: ApiAgent | undefined,
  trigger: ApiTrigger | undefined,
): TriggerTarget | undefined {
  if (agent === undefined || agent.deleting) return undefined;
  const box = caches.Box.get(agent.box);
  if (box === undefined || box.deleting) return undefined;
  if (!isCommitted(caches, agent)) return undefined;
  if (trigger === undefined || trigger.deleting || trigger.agent !== agent.name) return undefined;
  return {
    agent: { box: agent.box, agent: agent.name },
    agentUid: agent.uid,
    slug: trigger.slug,
    uid: trigger.uid,
    tokenId: trigger.tokenId,
    keyId: trigger.keyId,
    enabled: trigger.enabled,
    methods: trigger.methods,
    dedupeHeader: trigger.dedupeHeader,
    body: trigger.body,
  };
}

/**
 * Whether the agent is in a committed install, or in none. No request: the cache decides also about an agent that was read
 * live, so that all of an install show up at one moment.
 */
export function isCommitted({ Agent }: Pick<ApiCaches, 'Agent'>, agent: ApiAgent): boolean {
  const cached = Agent.get(`${agent.namespace}/${agent.name}`);
  return isInstalled(cached?.uid === agent.uid ? cached : agent, (name) => Agent.get(`${agent.namespace}/${name}`));
}

/** For {@link StartRunDeps.lastOfSession}: acceptance of the newest run of a session that the cache knows. */
export function lastOfSession(runs: Pick<Cache<ApiRun>, 'byIndex'>, namespace: string, sessionId: string) {
  let last: string | undefined;
  for (const run of runs.byIndex(BY_SESSION, sessionKey(namespace, sessionId))) {
    if (last === undefined || Date.parse(run.createdAt) > Date.parse(last)) last = run.createdAt;
  }
  return last;
}
