/**
 * What an API pod keeps of each object: projections of a few hundred bytes (no payloads, no transcripts, no
 * managedFields). An object that is being deleted stays in the cache with `deleting` true and counts as gone for every
 * tool and URL.
 */
import { ANNOTATION_CREATED_AT } from '../api/labels.js';
import { uncountedInstallOf } from '../api/install-count.js';
import { installMarkOf } from '../api/installing.js';
import type { InstallMark } from '../api/installing.js';
import type { ObjectMeta } from '../api/meta.js';
import { findCondition, isTrue } from '../api/conditions.js';
import { acceptedAt, boxOfNamespace, slugOfChildName, workspaceOfNamespace } from '../api/names.js';
import { isTerminal } from '../run/status.js';
import type { AgentMemory } from '../api/v1alpha1/agent-memory.js';
import type { AgentRun, RunPending, RunPhase, RunUsage } from '../api/v1alpha1/agent-run.js';
import type { AgentSchedule } from '../api/v1alpha1/agent-schedule.js';
import type { AgentSkill } from '../api/v1alpha1/agent-skill.js';
import type { AgentTemplate, TemplateContent } from '../api/v1alpha1/agent-template.js';
import type { AgentTrigger, TriggerMethod } from '../api/v1alpha1/agent-trigger.js';
import type { Agent } from '../api/v1alpha1/agent.js';
import type { APIKey } from '../api/v1alpha1/api-key.js';
import type { Box } from '../api/v1alpha1/box.js';
import type { FoldedTotals, Provider } from '../api/v1alpha1/common.js';
import type { Connector } from '../api/v1alpha1/connector.js';
import type { Workspace } from '../api/v1alpha1/workspace.js';
import { messageCount } from '../transcript/said.js';
import { sessionTitleOf } from '../run/session/title.js';
import { storedInputBytes } from '../run/message.js';
import { isGitOps } from '../api/gitops.js';
import { plainHostsOf } from '../connectors/mcp-server-rules.js';
import { sessionIdOf } from '../run/session/key.js';

interface View {
  name: string;
  uid: string;
  deleting: boolean;
}

export interface WorkspaceView extends View {
  expertSandbox: boolean;
}

export interface BoxView extends View {
  displayName: string;
  workspace: string;
  /** ISO 8601 with milliseconds. */
  createdAt: string;
  engine: string | undefined;
  endpoint?: Box['spec']['endpoint'];
  vendors?: Box['spec']['vendors'];
  credentialsSecret?: string | undefined;
  /** Hosts, with the port unless it is the usual one, that MCP servers may have with plain http. */
  plainHosts: readonly string[];
  /** Providers with a usable key, as the gateway saw them; undefined until it has looked. */
  availableProviders?: readonly Provider[] | undefined;
}

export interface AgentView extends View {
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
  /** Set while the install that made the agent is not committed: `isCommitted` of caches.ts asks for it. */
  install: InstallMark | undefined;
  /** UID of the template that does not count yet that it was installed with this agent. */
  uncounted: string | undefined;
}

export interface ConnectorView extends View {
  displayName: string;
  category: string;
  description: string;
  auth: Connector['spec']['auth'];
  url: string;
  secrets: readonly string[];
  homepage: string | undefined;
}

/** A template without the contents of its versions. */
export interface TemplateView extends View {
  namespace: string;
  workspace: string;
  displayName: string;
  description: string;
  category: string;
  tags: readonly string[];
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

export interface TriggerView extends View {
  namespace: string;
  box: string;
  agent: string;
  slug: string;
  displayName: string;
  description: string;
  body: string;
  methods: readonly TriggerMethod[];
  enabled: boolean;
  tokenId: string | undefined;
  keyId: string | undefined;
  dedupeHeader: string | undefined;
  gitOps: boolean;
  /** Runs that are no longer in the cluster, and those counted already but maybe still visible. */
  folded: FoldedTotals | undefined;
  folding: readonly string[] | undefined;
}

/** An object whose name is `<agent>.<slug>`. */
interface ChildView extends View {
  namespace: string;
  agent: string;
  slug: string;
  displayName: string;
  description: string;
  gitOps: boolean;
}

export interface ScheduleView extends ChildView {
  body: string;
  cron: string | undefined;
  runAt: string | undefined;
  timezone: string;
  enabled: boolean;
  lastTick: string | undefined;
  lastRunAt: string | undefined;
  lastRunId: string | undefined;
}

/** Without body and contents: a skill may have 1 MiB. */
export interface SkillView extends ChildView {
  files: readonly { path: string; bytes: number }[];
  updatedAt: string;
}

export interface MemoryView extends View {
  namespace: string;
  agent: string;
  text: string;
  createdAt: string;
  updatedAt: string;
}

export interface RunView extends View {
  namespace: string;
  box: string;
  agent: string;
  /** UID of the Agent that the run is for; undefined before the controller has seen a manifest's run. */
  agentUid: string | undefined;
  sessionId: string;
  /** What the session is called if this run opened it; undefined when its message is stored compressed only. */
  title: string | undefined;
  /** Acceptance, ISO 8601. */
  createdAt: string;
  origin: string;
  triggerName: string | undefined;
  triggerUid: string | undefined;
  phase: RunPhase;
  terminal: boolean;
  /** Why the run waits; undefined when it does not wait in the queue. */
  queuedReason: string | undefined;
  reason: string | undefined;
  message: string | undefined;
  provider: string | undefined;
  model: string | undefined;
  usage: RunUsage | undefined;
  finishedAt: string | undefined;
  /** Whether a pod took it. */
  claimed: boolean;
  /** What the run asked for at its end. */
  pending: RunPending | undefined;
  /** Stored size of the message, for the backlog budget. */
  inputBytes: number;
  /** How many messages get_session shows of it; undefined while it works, and when only its transcript can tell. */
  messages: number | undefined;
}

export interface ApiKeyView extends View {
  namespace: string;
  workspace: string;
  prefix: string;
  readOnly: boolean;
  lastUsedAt: string | undefined;
  /** What decides whether the key is valid (src/api/api-key-validity.ts). */
  credential: Pick<APIKey, 'metadata' | 'spec' | 'status'>;
}

function view(meta: ObjectMeta): View {
  return { name: meta.name, uid: meta.uid ?? '', deleting: meta.deletionTimestamp !== undefined };
}

/** A Kubernetes time as the spec writes times: UTC with milliseconds. */
export function isoTime(time: string): string {
  return new Date(time).toISOString();
}

/** Clocks of API pod and API server may differ by this much. */
const MAX_CREATED_SKEW_MS = 10_000;

/**
 * When an object was created. Kubernetes keeps whole seconds; the API pod notes the milliseconds beside them, so that
 * "newest first" is right for objects of one second. A note that does not fit the creation (a copied manifest) is ignored.
 */
export function createdAtOf(meta: ObjectMeta): string {
  const created = meta.creationTimestamp ?? '1970-01-01T00:00:00Z';
  const noted = Date.parse(meta.annotations?.[ANNOTATION_CREATED_AT] ?? '');
  const fits = Math.abs(noted - Date.parse(created)) <= MAX_CREATED_SKEW_MS;
  return fits ? new Date(noted).toISOString() : isoTime(created);
}

export function projectWorkspace(workspace: Workspace): WorkspaceView {
  return { ...view(workspace.metadata), expertSandbox: workspace.spec.expertSandbox };
}

export function projectBox(box: Box): BoxView {
  return {
    ...view(box.metadata),
    displayName: box.spec.displayName ?? box.metadata.name,
    workspace: box.spec.workspace,
    createdAt: createdAtOf(box.metadata),
    engine: box.spec.engine,
    endpoint: box.spec.endpoint,
    vendors: box.spec.vendors,
    credentialsSecret: box.spec.credentialsSecret,
    plainHosts: plainHostsOf(box.spec.egress.trustedHosts),
    availableProviders: box.status?.availableProviders,
  };
}

export function projectAgent(agent: Agent): AgentView {
  const namespace = agent.metadata.namespace ?? '';
  return {
    ...view(agent.metadata),
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

export function projectConnector({ metadata, spec }: Connector): ConnectorView {
  return {
    ...view(metadata),
    displayName: spec.name,
    category: spec.category,
    description: spec.description,
    auth: spec.auth,
    url: spec.remote.url,
    secrets: spec.secrets,
    homepage: spec.homepage,
  };
}

export function projectTemplate({ metadata, spec, status }: AgentTemplate): TemplateView {
  const namespace = metadata.namespace ?? '';
  const createdAt = createdAtOf(metadata);
  return {
    ...view(metadata),
    namespace,
    workspace: workspaceOfNamespace(namespace) ?? '',
    displayName: spec.name,
    description: spec.description,
    category: spec.category,
    tags: spec.tags,
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

export function projectTrigger(trigger: AgentTrigger): TriggerView {
  const namespace = trigger.metadata.namespace ?? '';
  return {
    ...view(trigger.metadata),
    namespace,
    box: boxOfNamespace(namespace) ?? '',
    agent: trigger.spec.agent,
    slug: slugOfChildName(trigger.metadata.name) ?? '',
    displayName: trigger.spec.name,
    description: trigger.spec.description ?? '',
    body: trigger.spec.body,
    methods: trigger.spec.methods,
    enabled: trigger.spec.enabled,
    tokenId: trigger.spec.tokenId,
    keyId: trigger.spec.keyId,
    dedupeHeader: trigger.spec.dedupeHeader,
    gitOps: isGitOps(trigger.metadata),
    folded: trigger.status?.folded,
    folding: trigger.status?.folding,
  };
}

function child(object: {
  metadata: ObjectMeta;
  spec: { agent: string; name: string; description?: string };
}): ChildView {
  return {
    ...view(object.metadata),
    namespace: object.metadata.namespace ?? '',
    agent: object.spec.agent,
    slug: slugOfChildName(object.metadata.name) ?? '',
    displayName: object.spec.name,
    description: object.spec.description ?? '',
    gitOps: isGitOps(object.metadata),
  };
}

export function projectSchedule(schedule: AgentSchedule): ScheduleView {
  const { spec, status } = schedule;
  return {
    ...child(schedule),
    body: spec.body,
    cron: spec.cron,
    runAt: spec.runAt,
    timezone: spec.timezone,
    enabled: spec.enabled,
    lastTick: status?.lastTick,
    lastRunAt: status?.lastRunAt,
    lastRunId: status?.lastRunId,
  };
}

export function projectSkill(skill: AgentSkill): SkillView {
  return {
    ...child(skill),
    files: skill.spec.files.map(({ path, bytes }) => ({ path, bytes })),
    updatedAt: isoTime(skill.spec.updatedAt ?? createdAtOf(skill.metadata)),
  };
}

export function projectMemory(memory: AgentMemory): MemoryView {
  const createdAt = createdAtOf(memory.metadata);
  return {
    ...view(memory.metadata),
    namespace: memory.metadata.namespace ?? '',
    agent: memory.spec.agent,
    text: memory.spec.text,
    createdAt,
    updatedAt: isoTime(memory.spec.updatedAt ?? createdAt),
  };
}

export function projectRun(run: AgentRun): RunView {
  const namespace = run.metadata.namespace ?? '';
  const status = run.status;
  const queued = isTrue(status?.conditions, 'Queued') ? findCondition(status?.conditions, 'Queued') : undefined;
  return {
    ...view(run.metadata),
    namespace,
    box: boxOfNamespace(namespace) ?? '',
    agent: run.spec.agent,
    agentUid: run.spec.agentUid ?? status?.agentUid,
    sessionId: sessionIdOf(run),
    title: run.spec.sessionTitle ?? (run.spec.message === undefined ? undefined : sessionTitleOf(run.spec.message)),
    createdAt: isoTime(acceptedAt(run)),
    origin: run.spec.trigger?.origin ?? 'api',
    triggerName: run.spec.trigger?.name,
    triggerUid: run.spec.trigger?.uid,
    phase: status?.phase ?? 'running',
    terminal: isTerminal(run),
    queuedReason: isTerminal(run) ? undefined : queued?.reason,
    reason: status?.reason,
    message: status?.message,
    provider: status?.provider,
    model: status?.model,
    usage: status?.usage,
    finishedAt: status?.finishedAt,
    claimed: status?.claim !== undefined,
    pending: status?.pending,
    inputBytes: storedInputBytes(run),
    messages: messageCount(run),
  };
}

/** The head of a run that is in the archive only: without its texts, which were counted when it was stored. */
export function projectArchivedRun(head: AgentRun): RunView {
  return { ...projectRun(head), messages: head.status?.transcript?.messages };
}

export function projectApiKey(key: APIKey): ApiKeyView {
  const { name, namespace = '', deletionTimestamp } = key.metadata;
  return {
    ...view(key.metadata),
    namespace,
    workspace: workspaceOfNamespace(namespace) ?? '',
    prefix: key.status?.prefix ?? name,
    readOnly: key.spec.readOnly,
    lastUsedAt: key.status?.lastUsedAt,
    credential: {
      metadata: { name, ...(deletionTimestamp === undefined ? {} : { deletionTimestamp }) },
      spec: key.spec,
      status: key.status?.hash === undefined ? {} : { hash: key.status.hash },
    },
  };
}
