/**
 * The informers of an API pod with their indexes, and the narrow readers on them. Reading them never costs a request;
 * the few live reads (a watch that is behind, an id that is not there) stand here too and say so.
 */
import { isInstalled } from '../api/installing.js';
import type { KubeObject } from '../api/meta.js';
import { boxNamespace, childName } from '../api/names.js';
import type { AgentRef } from '../api/names.js';
import { AgentMemories } from '../api/v1alpha1/agent-memory.js';
import { AgentRuns } from '../api/v1alpha1/agent-run.js';
import { AgentSchedules } from '../api/v1alpha1/agent-schedule.js';
import { AgentSkills, SKILL_PAGE_SIZE } from '../api/v1alpha1/agent-skill.js';
import { AgentTemplates } from '../api/v1alpha1/agent-template.js';
import { AgentTriggers } from '../api/v1alpha1/agent-trigger.js';
import type { TriggerMethod } from '../api/v1alpha1/agent-trigger.js';
import { Agents } from '../api/v1alpha1/agent.js';
import { APIKeys } from '../api/v1alpha1/api-key.js';
import { Boxes } from '../api/v1alpha1/box.js';
import { Connectors } from '../api/v1alpha1/connector.js';
import { Workspaces } from '../api/v1alpha1/workspace.js';
import { orUndefined } from '../kube/errors.js';
import type { Cache, Informer, InformerOptions, KubeApi } from '../kube/types.js';
import {
  projectAgent,
  projectApiKey,
  projectBox,
  projectConnector,
  projectMemory,
  projectRun,
  projectSchedule,
  projectSkill,
  projectTemplate,
  projectTrigger,
  projectWorkspace,
} from './views.js';
import type {
  AgentView,
  ApiKeyView,
  BoxView,
  ConnectorView,
  MemoryView,
  RunView,
  ScheduleView,
  SkillView,
  TemplateView,
  TriggerView,
  WorkspaceView,
} from './views.js';
import { sessionKey } from '../run/session/key.js';

/** Every informer of the API pod by the kind that it watches. */
export interface ApiCaches {
  Workspace: Informer<WorkspaceView>;
  Box: Informer<BoxView>;
  Agent: Informer<AgentView>;
  AgentTrigger: Informer<TriggerView>;
  AgentSchedule: Informer<ScheduleView>;
  AgentSkill: Informer<SkillView>;
  AgentMemory: Informer<MemoryView>;
  AgentRun: Informer<RunView>;
  APIKey: Informer<ApiKeyView>;
  Connector: Informer<ConnectorView>;
  AgentTemplate: Informer<TemplateView>;
}
export type CachedKind = keyof ApiCaches;

export type InformerFactory = <T extends KubeObject, P>(options: InformerOptions<T, P>) => Informer<P>;

/** Names of the indexes; the value that is looked up stands beside each. */
export const INDEX = {
  /** Boxes: workspace name. */
  boxesOfWorkspace: 'workspace',
  /** Agents: Box name. */
  agentsOfBox: 'box',
  /** First agents of installs that are not counted yet: UID of the template. */
  uncountedInstalls: 'uncounted',
  /** Triggers: `namespace/agent`. */
  triggersOfAgent: 'agent',
  /** Schedules, skills, memories: `namespace/agent`. */
  childrenOfAgent: 'agent',
  /** Runs: `namespace/agent`. */
  runsOfAgent: 'agent',
  /** Runs that have not ended: `namespace/agent`. */
  liveRunsOfAgent: 'live',
  /** Runs that ended with a question: `namespace/agent`. */
  askingRunsOfAgent: 'asking',
  /** Runs: `namespace/sessionId`. */
  runsOfSession: 'session',
  /** Runs: UID of the trigger. */
  runsOfTrigger: 'trigger',
  /** Runs that wait in the queue: Box name. */
  queuedRunsOfBox: 'queued',
  /** API keys: SHA-256 of the key in hex. */
  keysByHash: 'hash',
  /** Templates: workspace name. */
  templatesOfWorkspace: 'workspace',
  /** Templates that every workspace sees: `LISTED`. */
  listedTemplates: 'listed',
} as const;

/** The one value of the index of published templates. */
export const LISTED = 'yes';

const OF_AGENT = {
  [INDEX.childrenOfAgent]: (child: { namespace: string; agent: string }) => [`${child.namespace}/${child.agent}`],
};

/** Builds all informers; the caller starts and stops them. */
export function createApiCaches(create: InformerFactory): ApiCaches {
  return {
    Workspace: create({ type: Workspaces, project: projectWorkspace }),
    Box: create({
      type: Boxes,
      project: projectBox,
      indexes: { [INDEX.boxesOfWorkspace]: (box) => [box.workspace] },
    }),
    Agent: create({
      type: Agents,
      project: projectAgent,
      indexes: {
        [INDEX.agentsOfBox]: (agent) => [agent.box],
        [INDEX.uncountedInstalls]: ({ uncounted }) => (uncounted === undefined ? [] : [uncounted]),
      },
    }),
    AgentTrigger: create({
      type: AgentTriggers,
      project: projectTrigger,
      indexes: { [INDEX.triggersOfAgent]: (trigger) => [`${trigger.namespace}/${trigger.agent}`] },
    }),
    AgentSchedule: create({ type: AgentSchedules, project: projectSchedule, indexes: OF_AGENT }),
    AgentSkill: create({
      type: AgentSkills,
      project: projectSkill,
      indexes: OF_AGENT,
      pageSize: SKILL_PAGE_SIZE,
    }),
    AgentMemory: create({ type: AgentMemories, project: projectMemory, indexes: OF_AGENT }),
    AgentRun: create({
      type: AgentRuns,
      project: projectRun,
      indexes: {
        [INDEX.runsOfAgent]: (run) => [`${run.namespace}/${run.agent}`],
        [INDEX.liveRunsOfAgent]: (run) => (run.terminal ? [] : [`${run.namespace}/${run.agent}`]),
        [INDEX.askingRunsOfAgent]: (run) => (run.pending === undefined ? [] : [`${run.namespace}/${run.agent}`]),
        [INDEX.runsOfSession]: (run) => [sessionKey(run.namespace, run.sessionId)],
        [INDEX.runsOfTrigger]: (run) => (run.triggerUid === undefined ? [] : [run.triggerUid]),
        [INDEX.queuedRunsOfBox]: (run) => (run.queuedReason === undefined ? [] : [run.box]),
      },
    }),
    APIKey: create({
      type: APIKeys,
      project: projectApiKey,
      indexes: {
        [INDEX.keysByHash]: ({ credential: { status } }) => (status?.hash === undefined ? [] : [status.hash]),
      },
    }),
    Connector: create({ type: Connectors, project: projectConnector }),
    AgentTemplate: create({
      type: AgentTemplates,
      project: projectTemplate,
      indexes: {
        [INDEX.templatesOfWorkspace]: (template) => [template.workspace],
        [INDEX.listedTemplates]: (template) => (template.listed ? [LISTED] : []),
      },
    }),
  };
}

/** What a call of a trigger's URL needs to know. */
export interface TriggerTarget {
  agent: AgentRef;
  agentUid: string;
  /** False when the agent holds no slot: its runs are accepted and wait. */
  agentActive: boolean;
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
        agent === undefined ? undefined : projectAgent(agent),
        trigger === undefined ? undefined : projectTrigger(trigger),
      );
    },
  };
}

function target(
  caches: TriggerCaches,
  agent: AgentView | undefined,
  trigger: TriggerView | undefined,
): TriggerTarget | undefined {
  if (agent === undefined || agent.deleting) return undefined;
  const box = caches.Box.get(agent.box);
  if (box === undefined || box.deleting) return undefined;
  if (!isCommitted(caches, agent)) return undefined;
  if (trigger === undefined || trigger.deleting || trigger.agent !== agent.name) return undefined;
  return {
    agent: { box: agent.box, agent: agent.name },
    agentUid: agent.uid,
    agentActive: agent.active === true,
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
export function isCommitted({ Agent }: Pick<ApiCaches, 'Agent'>, agent: AgentView): boolean {
  const cached = Agent.get(`${agent.namespace}/${agent.name}`);
  return isInstalled(cached?.uid === agent.uid ? cached : agent, (name) => Agent.get(`${agent.namespace}/${name}`));
}

/** For {@link StartRunDeps.lastOfSession}: acceptance of the newest run of a session that the cache knows. */
export function lastOfSession(runs: Pick<Cache<RunView>, 'byIndex'>, namespace: string, sessionId: string) {
  let last: string | undefined;
  for (const run of runs.byIndex(INDEX.runsOfSession, sessionKey(namespace, sessionId))) {
    if (last === undefined || Date.parse(run.createdAt) > Date.parse(last)) last = run.createdAt;
  }
  return last;
}
