/** Spaces and agents as the tools show and create them (spec 2, 4.2.1, 4.2.2). */
import { API_VERSION } from '../../api/define-resource.js';
import { ANNOTATION_CREATED_AT, ANNOTATION_REQUESTED_BY, FINALIZER_CLEANUP } from '../../api/labels.js';
import { MAX_SLUG, boxNamespace, slugFromName } from '../../api/names.js';
import type { AgentRef } from '../../api/names.js';
import { AgentSpec, Agents, modelControlOf } from '../../api/v1alpha1/agent.js';
import type { Agent, ModelControl } from '../../api/v1alpha1/agent.js';
import type { Provider } from '../../api/v1alpha1/common.js';
import { isAlreadyExists, isNotFound, orUndefined } from '../../kube/errors.js';
import { whyUnavailable } from '../../models/availability.js';
import { findModel } from '../../models/catalog.js';
import { isoNow } from '../../runtime/clock.js';
import { connectorSummaries, expectInCatalog } from '../connectors/connectors.js';
import { expectOutputSchema, shownOutputSchema } from './output-schema.js';
import { memoizedLists, memoizedRecords } from '../memoized-lists.js';
import type { Caller } from '../keys/key-check.js';
import type { KeyedWaiter } from '../../kube/keyed-waiter.js';
import { mcpServerRecord } from '../connectors/mcp-servers.js';
import { isAgentWaiting } from '../runs/pending.js';
import { AGENT_NOT_FOUND, agentRefOf, agentsOf, boxesOf, chooseBox, idOf, isCommitted } from '../scope.js';
import type { ScopeDeps } from '../scope.js';
import { listScheduleSummaries } from '../schedules/schedules.js';
import { listSkillSummaries } from '../skills/skills.js';
import { listTriggerSummaries } from '../triggers/triggers.js';
import { UserError } from '../../api/user-error.js';
import type { WriteBarrier } from '../write-barrier.js';
import { createdAtOf } from '../../api/time.js';
import { LIVE_BY_AGENT } from '../../projections/agent-run.js';
import { BY_BOX, projectApiAgent } from '../../projections/agent.js';
import type { ApiAgent } from '../../projections/agent.js';
import type { ApiBox } from '../../projections/box.js';
import { agentKey } from '../../projections/indexes.js';
import { kubeCall } from '../kube-call.js';
import { compare } from '../../runtime/compare.js';

/** How long create_agent waits for the controller's decision about the slot. */
export const ACTIVE_WAIT_MS = 5_000;
const MAX_NAME_ATTEMPTS = 50;

export type AgentStatus = 'idle' | 'running' | 'waiting' | 'inactive';

export interface AgentDeps extends ScopeDeps {
  barrier: WriteBarrier;
  waiter: Pick<KeyedWaiter<ApiAgent>, 'wait'>;
  /** Random bytes in hex. */
  randomHex(bytes: number): string;
}

/** Records of list_spaces, oldest first. No request. */
export function listSpaces(deps: Pick<ScopeDeps, 'caches'>, caller: Caller) {
  return boxesOf(deps, caller.workspace).map((box) => ({
    id: box.name,
    name: box.displayName,
    agentCount: agentsOf(deps, box.name).length,
    createdAt: box.createdAt,
  }));
}

/** Records of list_agents, newest first; memoized until something in them may have changed. No request. */
export function listAgents(deps: Pick<ScopeDeps, 'caches'>, caller: Caller, spaceId: string | undefined) {
  const boxes = spaceId === undefined ? boxesOf(deps, caller.workspace) : [chooseBox(deps, caller, spaceId)];
  return agentLists(deps.caches, boxes.map(({ name }) => name).join(' '), () =>
    boxes
      .flatMap((box) => agentsOf(deps, box.name))
      .sort((a, b) => compare(b.createdAt, a.createdAt) || compare(idOf(a), idOf(b)))
      .map((agent) => agentRecord(agent, statusOf(deps, agent))),
  );
}

const agentRecord = memoizedRecords((agent: ApiAgent, status: AgentStatus) => ({
  id: idOf(agent),
  name: agent.displayName,
  handle: agent.handle,
  description: agent.description,
  status,
  space_id: agent.box,
  created_at: agent.createdAt,
}));

const agentLists = memoizedLists<ReturnType<typeof agentRecord>>(['Box', 'Agent', 'AgentRun']);

function statusOf({ caches }: Pick<ScopeDeps, 'caches'>, agent: ApiAgent): AgentStatus {
  if (agent.active === false) return 'inactive';
  const live = caches.AgentRun.byIndex(LIVE_BY_AGENT, agentKey(agent.namespace, agent.name));
  if (live.some((run) => !run.deleting)) return 'running';
  return isAgentWaiting(caches, agent) ? 'waiting' : 'idle';
}

/** What the controller has not confirmed yet does not count as true. */
const UNCONFIRMED = 'the controller has not assigned a slot yet; get_agent shows when it has';

export function inactiveReasonOf(agent: ApiAgent): string | null {
  if (agent.active === true) return null;
  return agent.active === undefined ? UNCONFIRMED : (agent.inactiveReason ?? 'the plan has no free agent slot');
}

/** The record of get_agent. One GET. */
export async function getAgent(deps: ScopeDeps, caller: Caller, id: string) {
  const { namespace, agent: name } = agentRefOf(deps, caller, id);
  const agent = await kubeCall(deps, (signal) => orUndefined(deps.api.get(Agents, { namespace, name }, { signal })));
  if (agent === undefined) throw new UserError(AGENT_NOT_FOUND);
  const projected = projectApiAgent(agent);
  if (projected.deleting || !isCommitted(deps.caches, projected)) throw new UserError(AGENT_NOT_FOUND);
  const { spec } = agent;
  return {
    id: idOf(projected),
    handle: projected.handle,
    name: spec.name,
    description: projected.description,
    spaceId: projected.box,
    status: statusOf(deps, projected),
    active: projected.active === true,
    inactiveReason: inactiveReasonOf(projected),
    soul: spec.soul,
    provider: spec.provider,
    model: spec.model ?? null,
    temperature: spec.temperature ?? null,
    stepLimit: spec.stepLimit ?? null,
    ...modelControlOf(spec),
    ...shownOutputSchema(spec),
    tools: spec.tools,
    selfImprovement: spec.selfImprovement,
    setup: spec.setup === undefined ? null : { required: spec.setup.required, prompt: spec.setup.prompt ?? null },
    mcpServers: (spec.mcpServers ?? []).map((server) => mcpServerRecord(server, projected.presentSecrets)),
    skills: listSkillSummaries(deps, projected),
    schedules: listScheduleSummaries(deps, projected),
    triggers: listTriggerSummaries(deps, projected),
    connectors: connectorSummaries(deps, projected),
    createdAt: createdAtOf(agent.metadata),
  };
}

/** Arguments of create_agent after their check. */
export interface NewAgent extends ModelControl {
  name: string;
  spaceId?: string | undefined;
  soul?: string | undefined;
  description?: string | undefined;
  connectors?: readonly string[] | undefined;
  provider?: Provider | undefined;
  model?: string | undefined;
  temperature?: number | undefined;
  stepLimit?: number | undefined;
  tools?: Partial<Record<string, boolean>> | undefined;
  selfImprovement?: Partial<Record<string, boolean>> | undefined;
  setup?: { required: boolean; prompt?: string | undefined } | undefined;
}

/** Creates an agent; one write. `active` is the controller's decision, for which it waits at most 5 s. */
export async function createAgent(deps: AgentDeps, caller: Caller, input: NewAgent) {
  const box = chooseBox(deps, caller, input.spaceId);
  expectOutputSchema(input.outputSchema);
  expectInCatalog(deps, input.connectors ?? []);
  const created = await createUnderFreeName(deps, caller, box, input);
  const write = { kind: Agents.kind, resourceVersion: created.metadata.resourceVersion ?? '' };
  const [seen] = await Promise.all([
    deps.waiter.wait({
      key: `${boxNamespace(box.name)}/${created.metadata.name}`,
      until: (agent) => agent.active !== undefined,
      ms: ACTIVE_WAIT_MS,
    }),
    deps.barrier.passed(write),
  ]);
  const agent = seen ?? projectApiAgent(created);
  return {
    agentId: idOf(agent),
    name: agent.displayName,
    handle: agent.handle,
    spaceId: box.name,
    active: agent.active === true,
    inactiveReason: inactiveReasonOf(agent),
    connectors: connectorSummaries(deps, agent),
    warnings: warningsOf(box, created),
  };
}

/** What would keep runs of the agent from working. */
export function warningsOf(box: ApiBox, { spec }: Pick<Agent, 'spec'>): string[] {
  const { provider, model } = spec;
  const unavailable = whyUnavailable(box, provider);
  return [
    ...(unavailable === undefined ? [] : [unavailable]),
    ...(provider === 'boxwright' || model === undefined || findModel(provider, model) !== undefined
      ? []
      : [`model is not a known one of provider ${provider}: list_models shows the known ones; its price is unknown`]),
  ];
}

/** The handle is the object's name. Two creates at once on two replicas: the loser of a name takes the next one. */
async function createUnderFreeName(deps: AgentDeps, caller: Caller, box: ApiBox, input: NewAgent): Promise<Agent> {
  const taken = takenHandles(deps, caller, box);
  const base = slugFromName(input.name) || `agent-${deps.randomHex(2)}`;
  const spec = specOf(input);
  for (let attempt = 0; attempt < MAX_NAME_ATTEMPTS; attempt++) {
    const name = freeHandle(base, taken);
    const agent = newAgent(deps, caller, { box: box.name, agent: name }, spec);
    try {
      return await kubeCall(deps, (signal) => deps.api.create(Agents, agent, { signal }));
    } catch (error) {
      if (isNotFound(error)) {
        throw new UserError(`Box ${box.name} is not ready: its namespace is not there yet; try again in a moment`);
      }
      if (!isAlreadyExists(error)) throw error;
      taken.add(name);
    }
  }
  throw new UserError('no free handle for this name: choose another name');
}

/** The agents whose handles are taken in the workspace; those that are being installed hold theirs, though nobody sees them. */
export function handleOwners({ caches }: Pick<ScopeDeps, 'caches'>, caller: Caller): ApiAgent[] {
  return boxesOf({ caches }, caller.workspace).flatMap(({ name }) =>
    caches.Agent.byIndex(BY_BOX, name).filter((agent) => !agent.deleting),
  );
}

/**
 * Handles of the workspace (those of agents that are being installed too), and object names of the Box (those of agents that
 * are being deleted too).
 */
export function takenHandles(deps: Pick<ScopeDeps, 'caches'>, caller: Caller, box: ApiBox): Set<string> {
  const taken = new Set(handleOwners(deps, caller).map(({ handle }) => handle));
  for (const agent of deps.caches.Agent.byIndex(BY_BOX, box.name)) taken.add(agent.name);
  return taken;
}

/** `base`, `base-2`, `base-3`, …: the first that is not taken, at most 36 characters. */
export function freeHandle(base: string, taken: ReadonlySet<string>): string {
  let handle = base;
  for (let number = 2; taken.has(handle); number++) {
    const suffix = `-${number}`;
    handle = base.slice(0, MAX_SLUG - suffix.length).replace(/(?<!-)-+$/, '') + suffix;
  }
  return handle;
}

function specOf(input: NewAgent): Agent['spec'] {
  const { spaceId: _spaceId, connectors = [], ...fields } = input;
  const spec = connectors.length === 0 ? fields : { ...fields, connectors: [...new Set(connectors)] };
  // The schema fills in what is not given, as the CRD would.
  return AgentSpec.parse(spec);
}

/** A new agent as tools write it. */
export function newAgent(deps: Pick<ScopeDeps, 'clock'>, caller: Caller, ref: AgentRef, spec: Agent['spec']): Agent {
  return {
    apiVersion: API_VERSION,
    kind: Agents.kind,
    metadata: {
      namespace: boxNamespace(ref.box),
      name: ref.agent,
      // From the start, so that even an agent that is deleted before its controller has seen it leaves nothing behind.
      finalizers: [FINALIZER_CLEANUP],
      annotations: {
        [ANNOTATION_REQUESTED_BY]: caller.keyPrefix,
        [ANNOTATION_CREATED_AT]: isoNow(deps.clock),
      },
    },
    spec,
  };
}
