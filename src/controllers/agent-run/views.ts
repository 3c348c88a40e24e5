/**
 * What the run controller keeps of runs, Jobs and pods, and how they are indexed. Messages, inputs and outputs are
 * dropped: memory is per projection, and there may be 50,000 finished runs.
 */
import { parseGrant, type Grant } from '../../run/usage/budget.js';
import { ANNOTATION_BUDGET, FINALIZER_FOLD, LABEL_AGENT, LABEL_RUN } from '../../api/labels.js';
import { slimMeta } from '../../api/meta.js';
import { callersOf } from '../../api/names.js';
import { disruptionOf } from '../../run/disruption.js';
import type { Disruption } from '../../run/disruption.js';
import { isTerminal } from '../../run/status.js';
import { AgentRuns, MAX_INLINE_MESSAGE_BYTES } from '../../api/v1alpha1/agent-run.js';
import type { AgentRun } from '../../api/v1alpha1/agent-run.js';
import { Jobs, Nodes, Pods } from '../../kube/core-types.js';
import type { ContainerStatus, Job, KubeNode, Pod } from '../../kube/core-types.js';
import { controllerOwner } from '../../kube/owner-references.js';
import type { InformerOptions } from '../../kube/types.js';
import { RUNNER_CONTAINER, TOOLS_CONTAINER } from '../../protocol/pod.js';
import { BY_AGENT, BY_NAMESPACE, agentIndexValue } from '../common/informers.js';
import { storedInputBytes } from '../../run/message.js';
import { sessionKeyOf } from '../../run/session/key.js';

/** Runs that have not ended, by `<namespace>/<agent>`. */
export const LIVE_BY_AGENT = 'live-agent';
/** Runs that have not ended, by namespace. */
export const LIVE_BY_NAMESPACE = 'live-namespace';
/** Runs by `<namespace>/<sessionId>`. */
export const BY_SESSION = 'session';
/** Runs by UID of their trigger. */
export const BY_TRIGGER_UID = 'trigger-uid';
/** Runs that have not ended, by the UID of the run whose agent called them. */
export const LIVE_BY_PARENT = 'live-parent';
/** Runs by the UID of each run above them. */
export const BY_CALLER = 'caller';
/** Runs by their UID. */
export const BY_UID = 'uid';
/** Pods by `<namespace>/<run>`. */
export const BY_RUN = 'run';
/** Pods by their node. */
export const BY_NODE = 'node';
/** Pods that no node can take, by namespace; where only the volume of their agent is in the way, by `<namespace>/<agent>`. */
export const UNSCHEDULABLE = 'unschedulable';

/** An AgentRun without its texts: they are never in the cache. */
export type RunView = Omit<AgentRun, 'spec' | 'status'> & {
  spec: Omit<AgentRun['spec'], 'message' | 'input' | 'sessionTitle'>;
  status?: Omit<NonNullable<AgentRun['status']>, 'output' | 'pending'>;
  /** Stored size of `spec.input.data`; absent without data. */
  inputDataBytes?: number;
  /** Size of a `spec.message` that is longer than our own services write one; only manifests have such. */
  messageBytes?: number;
  /** Stored size of message and input of a run that has not ended. */
  liveInputBytes?: number;
  /** The run ended with a question or an approval that is still to be answered. */
  waitsForAnswer?: boolean;
};

export function projectRun(run: AgentRun): RunView {
  const { message = '', input, sessionTitle: _title, ...spec } = run.spec;
  const { finalizers } = run.metadata;
  const metadata = { ...slimMeta(run.metadata), ...(finalizers === undefined ? {} : { finalizers }) };
  const view: RunView = { apiVersion: run.apiVersion, kind: run.kind, metadata, spec };
  if (input?.data !== undefined) view.inputDataBytes = input.data.length;
  const messageBytes = Buffer.byteLength(message);
  if (messageBytes > MAX_INLINE_MESSAGE_BYTES) view.messageBytes = messageBytes;
  if (!isTerminal(run)) view.liveInputBytes = storedInputBytes(run);
  if (run.status === undefined) return view;
  const { output: _output, pending, conditions, ...status } = run.status;
  if (pending !== undefined) view.waitsForAnswer = true;
  // Conditions of an ended run are never written again by this controller.
  const kept = conditions === undefined || isTerminal(run) ? {} : { conditions };
  return { ...view, status: { ...status, ...kept } };
}

/** UID of the Agent that executes the run: noted at acceptance, or by the controller for a run made by hand. */
export function agentUidOf(run: RunView): string | undefined {
  return run.spec.agentUid ?? run.status?.agentUid;
}

/** Whether the run will be counted in the totals of its owners; a run refused before it was taken on is not. */
export function isCounted(run: RunView): boolean {
  return run.metadata.finalizers?.includes(FINALIZER_FOLD) === true;
}

const unlessEnded = (run: RunView, value: string): readonly string[] => (isTerminal(run) ? [] : [value]);

export const runInformer: InformerOptions<AgentRun, RunView> = {
  type: AgentRuns,
  project: projectRun,
  indexes: {
    [BY_NAMESPACE]: (run) => [run.metadata.namespace ?? ''],
    [BY_AGENT]: (run) => [agentIndexValue(run.metadata.namespace, run.spec.agent)],
    [LIVE_BY_AGENT]: (run) => unlessEnded(run, agentIndexValue(run.metadata.namespace, run.spec.agent)),
    [LIVE_BY_NAMESPACE]: (run) => unlessEnded(run, run.metadata.namespace ?? ''),
    [LIVE_BY_PARENT]: (run) => (run.spec.parent === undefined ? [] : unlessEnded(run, run.spec.parent.uid)),
    [BY_CALLER]: (run) => callersOf(run).map(({ uid }) => uid),
    [BY_UID]: (run) => [run.metadata.uid ?? ''],
    [BY_SESSION]: (run) => [sessionKeyOf(run)],
    [BY_TRIGGER_UID]: (run) => (run.spec.trigger?.uid === undefined ? [] : [run.spec.trigger.uid]),
  },
};

export interface JobView {
  uid: string;
  name: string;
  namespace: string;
  /** UID of the AgentRun that owns it. */
  ownerUid: string | undefined;
  createdAt: number;
  /** From its annotation: what the run was granted when it was admitted. */
  grant?: Grant | undefined;
  deleting: boolean;
  hasTtl: boolean;
  /** Kueue holds the Job, or has stopped it: Kubernetes keeps no pods for it. */
  suspended: boolean;
  /** When the Job began to have pods: when it was made, or last resumed. */
  activeSince: number;
  /** How the Job ended; undefined while it works. */
  ended: 'Complete' | 'Failed' | undefined;
  /** Reason of the condition Failed, for example DeadlineExceeded. */
  failedReason: string | undefined;
}

export function projectJob(job: Job): JobView {
  const condition = (type: string) => job.status?.conditions?.find((one) => one.type === type && one.status === 'True');
  const failed = condition('Failed');
  const grant = parseGrant(job.metadata.annotations?.[ANNOTATION_BUDGET]);
  const resumed = job.status?.conditions?.find((one) => one.type === 'Suspended' && one.status === 'False');
  const createdAt = Date.parse(job.metadata.creationTimestamp ?? '');
  return {
    uid: job.metadata.uid ?? '',
    name: job.metadata.name,
    namespace: job.metadata.namespace ?? '',
    ownerUid: controllerOwner(job)?.uid,
    createdAt,
    ...(grant === undefined ? {} : { grant }),
    deleting: job.metadata.deletionTimestamp !== undefined,
    hasTtl: job.spec.ttlSecondsAfterFinished !== undefined,
    suspended: job.spec.suspend === true,
    activeSince: timeOf(resumed?.lastTransitionTime) ?? createdAt,
    ended: failed !== undefined ? 'Failed' : condition('Complete') === undefined ? undefined : 'Complete',
    failedReason: failed?.reason,
  };
}

export const jobInformer: InformerOptions<Job, JobView> = { type: Jobs, labelSelector: LABEL_RUN, project: projectJob };

export interface ContainerView {
  /** Why the container does not run yet, in the kubelet's words. */
  waiting: { reason: string; message: string } | undefined;
  startedAt: number | undefined;
  terminated: { exitCode: number; reason: string; message: string } | undefined;
}

export interface PodView extends Disruption {
  uid: string;
  name: string;
  namespace: string;
  /** The AgentRun and its agent, from the labels. */
  run: string;
  agent: string;
  createdAt: number;
  /** When the pod must be gone (it contains the grace period); undefined unless it is being deleted. */
  deletionAt: number | undefined;
  phase: string;
  /** The node that was chosen; undefined before. */
  node: string | undefined;
  /** Whether the node has made the pod's sandbox (network, runtime, volumes); undefined when it does not say. */
  sandbox: boolean | undefined;
  /** When a node was chosen; undefined before. */
  scheduledAt: number | undefined;
  /** What the scheduler says while it finds no node. */
  unschedulable: string | undefined;
  runner: ContainerView;
  tools: ContainerView;
}

export function projectPod(pod: Pod): PodView {
  const condition = (type: string) => pod.status?.conditions?.find((one) => one.type === type);
  const scheduled = condition('PodScheduled');
  const sandbox = condition('PodReadyToStartContainers');
  const noNode = scheduled?.status === 'False' && scheduled.reason === 'Unschedulable';
  return {
    uid: pod.metadata.uid ?? '',
    name: pod.metadata.name,
    namespace: pod.metadata.namespace ?? '',
    run: pod.metadata.labels?.[LABEL_RUN] ?? '',
    agent: pod.metadata.labels?.[LABEL_AGENT] ?? '',
    createdAt: Date.parse(pod.metadata.creationTimestamp ?? ''),
    deletionAt: timeOf(pod.metadata.deletionTimestamp),
    phase: pod.status?.phase ?? 'Pending',
    ...disruptionOf(pod),
    node: pod.spec.nodeName,
    sandbox: sandbox === undefined ? undefined : sandbox.status === 'True',
    scheduledAt: scheduled?.status === 'True' ? timeOf(scheduled.lastTransitionTime) : undefined,
    unschedulable: noNode ? (scheduled.message ?? 'no node can take the pod') : undefined,
    runner: containerView(pod.status?.containerStatuses, RUNNER_CONTAINER),
    tools: containerView(pod.status?.initContainerStatuses, TOOLS_CONTAINER),
  };
}

/**
 * Whether the scheduler names the volume of the agent, or the node that holds it, as what is in the way: other agents may
 * still find room.
 */
export function isAboutVolume(unschedulable: string): boolean {
  return /persistent ?volume|volume node affinity|pod affinity rules/i.test(unschedulable);
}

function containerView(statuses: readonly ContainerStatus[] | undefined, name: string): ContainerView {
  const state = statuses?.find((status) => status.name === name)?.state;
  const { waiting, running, terminated } = state ?? {};
  return {
    waiting: waiting === undefined ? undefined : { reason: waiting.reason ?? '', message: waiting.message ?? '' },
    startedAt: timeOf(running?.startedAt),
    terminated:
      terminated === undefined
        ? undefined
        : { exitCode: terminated.exitCode, reason: terminated.reason ?? '', message: terminated.message ?? '' },
  };
}

function timeOf(text: string | undefined): number | undefined {
  return text === undefined ? undefined : Date.parse(text);
}

/** A node's readiness and what its runtime can do, and nothing else: its status is written every few minutes. */
export interface NodeView {
  name: string;
  ready: boolean;
  /** Since when it is as it is. */
  since: number;
  /** What it, or the control plane, says about it. */
  message: string;
  /** Whether its default runtime gives pods user namespaces of their own. */
  userNamespaces: boolean;
}

export function projectNode(node: KubeNode): NodeView {
  const ready = node.status?.conditions?.find(({ type }) => type === 'Ready');
  const runtime = node.status?.runtimeHandlers?.find(({ name = '' }) => name === '');
  return {
    name: node.metadata.name,
    ready: ready?.status === 'True',
    since: timeOf(ready?.lastTransitionTime) ?? Date.parse(node.metadata.creationTimestamp ?? ''),
    message: ready?.message ?? '',
    userNamespaces: runtime?.features?.userNamespaces === true,
  };
}

export const nodeInformer: InformerOptions<KubeNode, NodeView> = { type: Nodes, project: projectNode };

export const podInformer: InformerOptions<Pod, PodView> = {
  type: Pods,
  labelSelector: LABEL_RUN,
  project: projectPod,
  indexes: {
    [BY_RUN]: (pod) => [`${pod.namespace}/${pod.run}`],
    [BY_NODE]: (pod) => (pod.node === undefined ? [] : [pod.node]),
    [UNSCHEDULABLE]: (pod) => {
      if (pod.unschedulable === undefined) return [];
      return [isAboutVolume(pod.unschedulable) ? agentIndexValue(pod.namespace, pod.agent) : pod.namespace];
    },
  },
};
