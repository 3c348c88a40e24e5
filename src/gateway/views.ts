/** What the gateway keeps of the objects that it watches: enough to check a token, pin, serve and finish a run. */
import { API_VERSION } from '../api/define-resource.js';
import { parseGrant, type Grant } from '../run/usage/budget.js';
import { installMarkOf } from '../api/installing.js';
import { ANNOTATION_BUDGET, LABEL_RUN, ANNOTATION_PREVIOUS_RUN } from '../api/labels.js';
import { slimMeta } from '../api/meta.js';
import { slugOfChildName } from '../api/names.js';
import { isTerminal } from '../run/status.js';
import { AgentRuns, type AgentRun } from '../api/v1alpha1/agent-run.js';
import type { AgentMemory } from '../api/v1alpha1/agent-memory.js';
import type { AgentSkill } from '../api/v1alpha1/agent-skill.js';
import type { Agent } from '../api/v1alpha1/agent.js';
import type { Box, EndpointProbe } from '../api/v1alpha1/box.js';
import type { Provider } from '../api/v1alpha1/common.js';
import type { Connector } from '../api/v1alpha1/connector.js';
import { controllerOwner } from '../kube/owner-references.js';
import type { Job, Pod } from '../kube/core-types.js';
import { storedInputBytes } from '../run/message.js';
import { isGitOps } from '../api/gitops.js';

/** Index of runs: sessionKeyOf. */
export const RUNS_BY_SESSION = 'session';

/** Index of runs: UID of the run whose agent called them. */
export const RUNS_BY_PARENT = 'parent';
/** Index of agents: namespace. */
export const AGENTS_BY_NAMESPACE = 'namespace';

/** An AgentRun as the gateway keeps it, and the size of what it leaves out. */
export type RunView = AgentRun & {
  /** Stored size of message and input of a run that has not ended: it counts in the backlog budget. */
  liveInputBytes?: number;
};

/** What is written back of a view. */
export function runOf({ liveInputBytes: _bytes, ...run }: RunView): AgentRun {
  return run;
}

/** A run without its compressed input; of a finished one only what histories and late calls need. */
export function projectRun(run: AgentRun): RunView {
  // Items of a list may come without kind; a status write needs it.
  const base = { apiVersion: API_VERSION, kind: AgentRuns.kind, metadata: slimMeta(run.metadata) };
  if (!isTerminal(run)) {
    const { input, ...spec } = run.spec;
    const slim =
      input === undefined ? undefined : { encoding: input.encoding, bytes: input.bytes, sha256: input.sha256 };
    return {
      ...base,
      liveInputBytes: storedInputBytes(run),
      spec: slim === undefined ? spec : { ...spec, input: slim },
      ...(run.status === undefined ? {} : { status: run.status }),
    };
  }
  const { agent, sessionId, parent } = run.spec;
  const { phase, reason, claim, transcript, usageFinal, pending, untrusted, approvals } = run.status ?? {
    phase: 'running' as const,
  };
  return {
    ...base,
    spec: {
      agent,
      ...(sessionId === undefined ? {} : { sessionId }),
      ...(parent === undefined ? {} : { parent }),
    },
    status: {
      phase,
      ...(reason === undefined ? {} : { reason }),
      ...(claim === undefined ? {} : { claim }),
      ...(transcript === undefined ? {} : { transcript }),
      ...(usageFinal === undefined ? {} : { usageFinal }),
      ...(pending === undefined ? {} : { pending }),
      ...(untrusted === undefined ? {} : { untrusted }),
      ...(approvals === undefined ? {} : { approvals }),
    },
  };
}

/** A pod of a run. */
export interface RunPodView {
  namespace: string;
  name: string;
  uid: string;
  /** Label `boxwright.dev/run`. */
  run: string;
  jobName: string;
  jobUid: string;
  /** True when all containers have ended for good. */
  ended: boolean;
}

export function projectRunPod(pod: Pod): RunPodView {
  const owner = controllerOwner(pod);
  return {
    namespace: pod.metadata.namespace ?? '',
    name: pod.metadata.name,
    uid: pod.metadata.uid ?? '',
    run: pod.metadata.labels?.[LABEL_RUN] ?? '',
    jobName: owner?.kind === 'Job' ? owner.name : '',
    jobUid: owner?.kind === 'Job' ? owner.uid : '',
    ended: pod.status?.phase === 'Succeeded' || pod.status?.phase === 'Failed',
  };
}

/** The Job of a run. */
export interface RunJobView {
  namespace: string;
  name: string;
  uid: string;
  runName: string;
  runUid: string;
  /** The latest earlier run of the session, if any. */
  previousRun?: string;
  /** What the budgets left to the run when it was admitted. */
  grant?: Grant | undefined;
}

export function projectRunJob(job: Job): RunJobView {
  const owner = controllerOwner(job);
  const grant = parseGrant(job.metadata.annotations?.[ANNOTATION_BUDGET]);
  const previousRun = job.metadata.annotations?.[ANNOTATION_PREVIOUS_RUN];
  return {
    namespace: job.metadata.namespace ?? '',
    name: job.metadata.name,
    uid: job.metadata.uid ?? '',
    runName: owner?.kind === 'AgentRun' ? owner.name : '',
    runUid: owner?.kind === 'AgentRun' ? owner.uid : '',
    ...(previousRun === undefined ? {} : { previousRun }),
    ...(grant === undefined ? {} : { grant }),
  };
}

/** Another gateway pod. */
export interface GatewayPodView {
  name: string;
  uid: string;
  /** Ready and not being deleted: it can serve the runs that are pinned to it. */
  serving: boolean;
}

export function projectGatewayPod(pod: Pod): GatewayPodView {
  const ready = pod.status?.conditions?.some(({ type, status }) => type === 'Ready' && status === 'True') === true;
  return {
    name: pod.metadata.name,
    uid: pod.metadata.uid ?? '',
    serving: ready && pod.metadata.deletionTimestamp === undefined,
  };
}

/** What a run needs to know of its agent. */
export interface AgentView {
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
    | 'tools'
    | 'selfImprovement'
    | 'approvals'
    | 'mcpServers'
    | 'connectors'
  >;
}

export function projectAgent(agent: Agent): AgentView {
  const { setup: _setup, paused: _paused, ...spec } = agent.spec;
  return {
    namespace: agent.metadata.namespace ?? '',
    name: agent.metadata.name,
    uid: agent.metadata.uid ?? '',
    active: agent.status?.active !== false,
    deleting: agent.metadata.deletionTimestamp !== undefined,
    installing: installMarkOf(agent.metadata) !== undefined,
    gitOps: isGitOps(agent.metadata),
    spec,
  };
}

/** What a run needs to know of its Box. */
export interface BoxView {
  name: string;
  uid: string;
  workspace: string;
  engine: Box['spec']['engine'];
  endpoint: Box['spec']['endpoint'];
  vendors: Box['spec']['vendors'];
  trustedHosts: readonly NonNullable<Box['spec']['egress']['trustedHosts']>[number][];
  credentialsSecret: string | undefined;
  /** What the status says; undefined when nobody has looked yet. */
  availableProviders: readonly Provider[] | undefined;
  /** What the endpoint was found to be like; undefined when nobody has looked yet. */
  endpointProbe: EndpointProbe | undefined;
  untrusted: Box['spec']['untrusted'];
  egress: Box['spec']['egress']['mode'];
  executionSeconds: number;
  heartbeatSeconds: number;
  modelCallSeconds: number;
}

export function projectBox(box: Box): BoxView {
  return {
    name: box.metadata.name,
    uid: box.metadata.uid ?? '',
    workspace: box.spec.workspace,
    engine: box.spec.engine,
    endpoint: box.spec.endpoint,
    vendors: box.spec.vendors,
    trustedHosts: box.spec.egress.trustedHosts ?? [],
    credentialsSecret: box.spec.credentialsSecret,
    availableProviders: box.status?.availableProviders,
    endpointProbe: box.status?.endpointProbe,
    untrusted: box.spec.untrusted,
    egress: box.spec.egress.mode,
    executionSeconds: box.spec.bounds.executionSeconds,
    heartbeatSeconds: box.spec.bounds.heartbeatSeconds,
    modelCallSeconds: box.spec.bounds.modelCallSeconds,
  };
}

/** A catalogue entry: where its MCP server is. */
export interface ConnectorView {
  url: string;
  headers: readonly { name: string; value: string }[];
}

export function projectConnector({ spec: { remote } }: Connector): ConnectorView {
  return { url: remote.url, headers: remote.headers };
}

/** Index of notes and skills: `namespace/agent`. */
export const BY_AGENT = 'agent';

/** The value of {@link BY_AGENT}. */
export function agentKey(child: { namespace: string; agent: string }): string {
  return `${child.namespace}/${child.agent}`;
}

/** A note of an agent. */
export interface NoteView {
  namespace: string;
  name: string;
  uid: string;
  agent: string;
  text: string;
  /** RFC 3339. */
  updatedAt: string;
  untrusted: boolean;
  deleting: boolean;
}

export function projectNote({ metadata, spec }: AgentMemory): NoteView {
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

/** A skill without its contents. */
export interface SkillView {
  namespace: string;
  agent: string;
  slug: string;
  description: string;
}

export function projectSkill({ metadata, spec }: AgentSkill): SkillView {
  return {
    namespace: metadata.namespace ?? '',
    agent: spec.agent,
    slug: slugOfChildName(metadata.name) ?? '',
    description: spec.description,
  };
}
