/**
 * What a caller may see: the Boxes of its workspace and the agents in them. An id of another workspace answers exactly
 * like an unknown one, so every look-up goes through here.
 */
import { agentId, boxNamespace, childName, isSlug, parseAgentId } from '../api/names.js';
import { API_VERSION } from '../api/define-resource.js';
import { AgentRuns } from '../api/v1alpha1/agent-run.js';
import { AgentTriggers } from '../api/v1alpha1/agent-trigger.js';
import { AgentSchedules } from '../api/v1alpha1/agent-schedule.js';
import { AgentSkills } from '../api/v1alpha1/agent-skill.js';
import { Boxes } from '../api/v1alpha1/box.js';
import { Agents } from '../api/v1alpha1/agent.js';
import type { KubeObject, ResourceType } from '../api/meta.js';
import type { ArchiveReader } from '../archive/types.js';
import type { Cache, KubeApi } from '../kube/types.js';
import { orUndefined } from '../kube/errors.js';
import type { Clock } from '../runtime/clock.js';
import { withTimeout } from '../runtime/with-timeout.js';
import { isCommitted } from './caches.js';
import type { ApiCaches } from './caches.js';
import type { Caller } from './keys/key-check.js';
import { nearNames } from './near-names.js';
import { UserError } from '../api/user-error.js';
import { sessionKey } from '../run/session/key.js';
import { BY_SESSION, projectApiRun } from '../projections/agent-run.js';
import type { ApiRun } from '../projections/agent-run.js';
import { projectApiSchedule } from '../projections/agent-schedule.js';
import type { ApiSchedule } from '../projections/agent-schedule.js';
import { projectApiSkill } from '../projections/agent-skill.js';
import type { ApiSkill } from '../projections/agent-skill.js';
import { projectApiTrigger } from '../projections/agent-trigger.js';
import type { ApiTrigger } from '../projections/agent-trigger.js';
import { BY_BOX, projectApiAgent } from '../projections/agent.js';
import type { ApiAgent } from '../projections/agent.js';
import type { ApiBox } from '../projections/box.js';
import { BY_AGENT, BY_WORKSPACE, agentKey } from '../projections/indexes.js';

/** Longest wait for one call of the Kubernetes API inside a tool. */
export const KUBE_CALL_MS = 15_000;

export interface ScopeDeps {
  caches: ApiCaches;
  api: KubeApi;
  clock: Clock;
  /** Absent when the installation has none. */
  archive?: ArchiveReader | undefined;
}

export const AGENT_NOT_FOUND =
  'agent not found: there is no agent with this agentId in this workspace; list_agents shows the agents';

/** The Boxes of a workspace that are not being deleted, oldest first. */
export function boxesOf({ caches }: Pick<ScopeDeps, 'caches'>, workspace: string): ApiBox[] {
  return caches.Box.byIndex(BY_WORKSPACE, workspace)
    .filter((box) => !box.deleting)
    .sort((a, b) => compare(a.createdAt, b.createdAt) || compare(a.name, b.name));
}

/** The agents of a Box that can be seen: not being deleted, not half installed. Order is not defined. */
export function agentsOf({ caches }: Pick<ScopeDeps, 'caches'>, box: string): ApiAgent[] {
  return caches.Agent.byIndex(BY_BOX, box).filter((agent) => !agent.deleting && isCommitted(caches, agent));
}

/** The rule of create_agent (spec 4.2.1): the named Box, or the only one; else an error that lists the Boxes. */
export function chooseBox(deps: Pick<ScopeDeps, 'caches'>, caller: Caller, spaceId: string | undefined): ApiBox {
  const boxes = boxesOf(deps, caller.workspace);
  if (boxes.length === 0) {
    throw new UserError(`this workspace has no Box; an administrator of the cluster makes one: ${boxCommand(caller)}`);
  }
  if (spaceId === undefined) {
    const [only] = boxes;
    if (only !== undefined && boxes.length === 1) return only;
    throw new UserError(`this workspace has several Boxes: pass spaceId, one of: ${listOf(boxes)}`);
  }
  const box = boxes.find(({ name }) => name === spaceId);
  if (box === undefined)
    throw new UserError(`Box not found: pass a spaceId of this workspace, one of: ${listOf(boxes)}`);
  return box;
}

function boxCommand({ workspace }: Caller): string {
  const box = { apiVersion: API_VERSION, kind: Boxes.kind, metadata: { name: 'NAME' }, spec: { workspace } };
  return `echo '${JSON.stringify(box)}' | kubectl apply -f -`;
}

function listOf(boxes: readonly ApiBox[]): string {
  return boxes.map((box) => (box.displayName === box.name ? box.name : `${box.name} (${box.displayName})`)).join(', ');
}

/** Box and name of an agentId in the caller's workspace; throws {@link AGENT_NOT_FOUND}. No request. */
export function agentRefOf(deps: Pick<ScopeDeps, 'caches'>, caller: Caller, id: string) {
  const ref = parseAgentId(id);
  const box = ref === undefined ? undefined : deps.caches.Box.get(ref.box);
  if (ref === undefined || box === undefined || box.deleting || box.workspace !== caller.workspace) {
    throw new UserError(AGENT_NOT_FOUND);
  }
  return { ...ref, namespace: boxNamespace(ref.box), box: ref.box, apiBox: box };
}

/** The agent of an agentId; from the cache, or by one live GET when the cache does not know it. */
export async function findAgent(deps: ScopeDeps, caller: Caller, id: string): Promise<ApiAgent> {
  const { namespace, agent: name } = agentRefOf(deps, caller, id);
  const agent = await cachedOrLive(
    deps,
    { cache: deps.caches.Agent, type: Agents, project: projectApiAgent },
    namespace,
    name,
  );
  if (agent === undefined || agent.deleting || !isCommitted(deps.caches, agent)) throw new UserError(AGENT_NOT_FOUND);
  return agent;
}

/** The triggers of an agent that are not being deleted, by slug. */
export function triggersOf({ caches }: Pick<ScopeDeps, 'caches'>, agent: ApiAgent): ApiTrigger[] {
  return bySlug(caches.AgentTrigger.byIndex(BY_AGENT, agentKey(agent.namespace, agent.name)));
}

/** The trigger of an agent by its slug. */
export function findTrigger(deps: ScopeDeps, agent: ApiAgent, slug: string): Promise<ApiTrigger> {
  const source = { cache: deps.caches.AgentTrigger, type: AgentTriggers, project: projectApiTrigger };
  return findChild(deps, agent, slug, { ...source, kind: 'trigger', known: triggersOf });
}

/** The schedules of an agent that are not being deleted, by slug. */
export function schedulesOf({ caches }: Pick<ScopeDeps, 'caches'>, agent: ApiAgent): ApiSchedule[] {
  return bySlug(caches.AgentSchedule.byIndex(BY_AGENT, agentKey(agent.namespace, agent.name)));
}

/** The skills of an agent that are not being deleted, by slug. */
export function skillsOf({ caches }: Pick<ScopeDeps, 'caches'>, agent: ApiAgent): ApiSkill[] {
  return bySlug(caches.AgentSkill.byIndex(BY_AGENT, agentKey(agent.namespace, agent.name)));
}

function bySlug<V extends { slug: string; deleting: boolean }>(children: readonly V[]): V[] {
  return children.filter((child) => !child.deleting).sort((a, b) => compare(a.slug, b.slug));
}

/** The schedule of an agent by its slug. */
export function findSchedule(deps: ScopeDeps, agent: ApiAgent, slug: string): Promise<ApiSchedule> {
  const source = { cache: deps.caches.AgentSchedule, type: AgentSchedules, project: projectApiSchedule };
  return findChild(deps, agent, slug, { ...source, kind: 'schedule', known: schedulesOf });
}

/** The skill of an agent by its slug. */
export function findSkill(deps: ScopeDeps, agent: ApiAgent, slug: string): Promise<ApiSkill> {
  const source = { cache: deps.caches.AgentSkill, type: AgentSkills, project: projectApiSkill };
  return findChild(deps, agent, slug, { ...source, kind: 'skill', known: skillsOf });
}

interface ChildSource<T extends KubeObject, V> extends Source<T, V> {
  kind: string;
  known(deps: ScopeDeps, agent: ApiAgent): readonly V[];
}

async function findChild<T extends KubeObject, V extends { slug: string; deleting: boolean }>(
  deps: ScopeDeps,
  agent: ApiAgent,
  slug: string,
  source: ChildSource<T, V>,
): Promise<V> {
  const child = isSlug(slug)
    ? await cachedOrLive(deps, source, agent.namespace, childName(agent.name, slug))
    : undefined;
  if (child === undefined || child.deleting) {
    throw new UserError(slugNotFound(source.kind, slug, source.known(deps, agent)));
  }
  return child;
}

/** What to say about a slug that is not there: which there are, the nearest first. */
export function slugNotFound(kind: string, slug: string, known: readonly { slug: string }[]): string {
  const names = nearNames(
    slug,
    known.map((child) => child.slug),
  );
  return `${kind} not found: this agent has no ${kind} with this slug; ${names === '' ? 'it has none' : `its slugs are: ${names}`}`;
}

/** The shown runs of a session of this agent, oldest first; of one that the cache does not know, the run that opened it. */
export async function sessionRuns(deps: ScopeDeps, agent: ApiAgent, sessionId: string): Promise<ApiRun[]> {
  const known = deps.caches.AgentRun.byIndex(BY_SESSION, sessionKey(agent.namespace, sessionId));
  const runs = known.filter((run) => isShown(deps, agent, run)).sort(byAcceptance);
  const first = sessionId.startsWith('s-') ? sessionId.slice(2) : '';
  if (known.length > 0 || !DNS_LABEL.test(first)) return runs;
  const ref = { namespace: agent.namespace, name: first };
  const live = await kubeCall(deps, (signal) => orUndefined(deps.api.get(AgentRuns, ref, { signal })));
  const run = live === undefined ? undefined : projectApiRun(live);
  return run !== undefined && run.sessionId === sessionId && isShown(deps, agent, run) ? [run] : [];
}

/** Order of runs: acceptance, then name. */
export function byAcceptance(a: ApiRun, b: ApiRun): number {
  return compare(a.createdAt, b.createdAt) || compare(a.name, b.name);
}

export const RUN_NOT_FOUND = 'run not found: this agent has no run with this runId; list_runs shows the latest';

/** Whether the run is one of this agent, not of a deleted namesake, and not being deleted. */
export function isRunOf(agent: ApiAgent, run: ApiRun): boolean {
  return isShown({}, agent, run);
}

/**
 * Whether a run is one of this agent, and not of a deleted namesake, that the tools show. A run that was deleted is gone
 * at once without an archive; with one it stays visible, first in the cluster and then in the archive.
 */
export function isShown({ archive }: Pick<ScopeDeps, 'archive'>, agent: ApiAgent, run: ApiRun): boolean {
  if (run.deleting && archive === undefined) return false;
  return run.agent === agent.name && (run.agentUid === undefined || run.agentUid === agent.uid);
}

/** The run of an agent while it is in the cluster; from the cache, or by one live GET when the cache does not know it. */
export async function findRun(deps: ScopeDeps, agent: ApiAgent, runId: string): Promise<ApiRun | undefined> {
  const source = { cache: deps.caches.AgentRun, type: AgentRuns, project: projectApiRun };
  const run = DNS_LABEL.test(runId) ? await cachedOrLive(deps, source, agent.namespace, runId) : undefined;
  return run !== undefined && isRunOf(agent, run) ? run : undefined;
}

/** Names that can be in a path of the API server: an id from a client is never put there unchecked. */
export const DNS_LABEL = /^[a-z0-9]([-a-z0-9]{0,61}[a-z0-9])?$/;

interface Source<T extends KubeObject, P> {
  cache: Pick<Cache<P>, 'get'>;
  type: ResourceType<T>;
  project: (object: T) => P;
}

async function cachedOrLive<T extends KubeObject, P>(
  deps: ScopeDeps,
  source: Source<T, P>,
  namespace: string,
  name: string,
): Promise<P | undefined> {
  const cached = source.cache.get(`${namespace}/${name}`);
  if (cached !== undefined) return cached;
  const live = await kubeCall(deps, (signal) =>
    orUndefined(deps.api.get(source.type, { namespace, name }, { signal })),
  );
  return live === undefined ? undefined : source.project(live);
}

/** One call of the Kubernetes API, or of the archive, with the bound of all tools. */
export function kubeCall<T>(deps: Pick<ScopeDeps, 'clock'>, call: (signal: AbortSignal) => Promise<T>): Promise<T> {
  return withTimeout(deps.clock, KUBE_CALL_MS, call);
}

/** Reads that end together with the call that they are parts of. */
export function readsWithin({ api }: Pick<ScopeDeps, 'api'>, signal: AbortSignal): Pick<KubeApi, 'get'> {
  return { get: (type, ref) => api.get(type, ref, { signal }) };
}

/** `<box>.<agent>` */
export function idOf(agent: Pick<ApiAgent, 'box' | 'name'>): string {
  return agentId({ box: agent.box, agent: agent.name });
}

/** Order of strings by code units. */
export function compare(a: string, b: string): number {
  return a < b ? -1 : a > b ? 1 : 0;
}

/** Refuses the change of an object whose source of truth is a repository. */
export function refuseGitOps(object: { gitOps: boolean }): void {
  if (object.gitOps) throw new UserError('managed by GitOps: change it in its source');
}
