/**
 * What a caller may see: the Boxes of its workspace and the agents in them. An id of another workspace gets exactly the
 * answer of an unknown one, so every look-up goes through here.
 */
import { agentId, boxNamespace, parseAgentId } from '../api/names.js';
import { API_VERSION } from '../api/define-resource.js';
import { Boxes } from '../api/v1alpha1/box.js';
import { Agents } from '../api/v1alpha1/agent.js';
import type { ArchiveReader } from '../archive/types.js';
import type { KubeApi } from '../kube/types.js';
import type { Clock } from '../runtime/clock.js';
import { isInstalled } from '../api/installing.js';
import type { ApiCaches } from './caches.js';
import type { FileLinks } from './files/file-links.js';
import { cachedOrLive } from './kube-call.js';
import type { Caller } from './keys/key-check.js';
import { UserError } from '../api/user-error.js';
import { BY_BOX, projectApiAgent } from '../projections/agent.js';
import type { ApiAgent } from '../projections/agent.js';
import type { ApiBox } from '../projections/box.js';
import { BY_WORKSPACE } from '../projections/indexes.js';
import { compare } from '../runtime/compare.js';

export interface ScopeDeps {
  caches: ApiCaches;
  api: KubeApi;
  clock: Clock;
  /** Download URLs of what runs published. */
  fileLinks: Pick<FileLinks, 'of'>;
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

/**
 * Whether the agent is in a committed install, or in none. No request: the cache also decides about an agent that was read
 * live, so that all agents of an install appear at the same moment.
 */
export function isCommitted({ Agent }: Pick<ApiCaches, 'Agent'>, agent: ApiAgent): boolean {
  const cached = Agent.get(`${agent.namespace}/${agent.name}`);
  return isInstalled(cached?.uid === agent.uid ? cached : agent, (name) => Agent.get(`${agent.namespace}/${name}`));
}

/** `<box>.<agent>` */
export function idOf(agent: Pick<ApiAgent, 'box' | 'name'>): string {
  return agentId({ box: agent.box, agent: agent.name });
}
