/** Projections of pods: those of runs, and our own of other replicas. */
import { LABEL_AGENT, LABEL_RUN } from '../api/labels.js';
import { millisOf } from '../api/time.js';
import { Pods } from '../kube/core-types.js';
import type { ContainerStatus, Pod } from '../kube/core-types.js';
import { controllerOwner } from '../kube/owner-references.js';
import type { InformerOptions } from '../kube/types.js';
import { RUNNER_CONTAINER, TOOLS_CONTAINER } from '../protocol/pod.js';
import { saysNoRoom, saysVolumeInTheWay } from '../kube/kubernetes-messages.js';
import { agentKey } from './indexes.js';
import { locationOf } from './meta.js';
import type { Location } from './meta.js';

/** Pods by `<namespace>/<run>`. */
export const BY_RUN = 'run';
/** Pods by their node. */
export const BY_NODE = 'node';
/** Pods that no node can take, by namespace; where only the volume of their agent is in the way, by `<namespace>/<agent>`. */
export const UNSCHEDULABLE = 'unschedulable';
/** Pods for which no node has room, of all namespaces: by {@link ANYWHERE}. */
export const WITHOUT_ROOM = 'without-room';
export const ANYWHERE = '';

interface RunPod extends Location {
  /** The AgentRun, from the label. */
  run: string;
}

function projectRunPod({ metadata }: Pod): RunPod {
  return { ...locationOf(metadata), run: metadata.labels?.[LABEL_RUN] ?? '' };
}

/** A container of a run's pod. */
export interface ContainerProjection {
  /** Why the container does not run yet, in the kubelet's words. */
  waiting: { reason: string; message: string } | undefined;
  startedAt: number | undefined;
  terminated: { exitCode: number; reason: string; message: string } | undefined;
}

/** The pod of a run, as the controller follows it. */
export interface ControllerPod extends RunPod {
  /** The agent of the run, from the label. */
  agent: string;
  createdAt: number;
  /** When the pod must be gone (it contains the grace period); undefined unless it is being deleted. */
  deletionAt: number | undefined;
  phase: string;
  reason: string | undefined;
  message: string | undefined;
  /** The node that was chosen; undefined before. */
  node: string | undefined;
  /** Whether the node has made the pod's sandbox (network, runtime, volumes); undefined when it does not say. */
  sandbox: boolean | undefined;
  /** When a node was chosen; undefined before. */
  scheduledAt: number | undefined;
  /** What the scheduler says while it finds no node. */
  unschedulable: string | undefined;
  /** Reason of the condition DisruptionTarget, for example EvictionByEvictionAPI. */
  disruption: string | undefined;
  runner: ContainerProjection;
  tools: ContainerProjection;
}

export function projectControllerPod(pod: Pod): ControllerPod {
  const condition = (type: string) => pod.status?.conditions?.find((one) => one.type === type);
  const scheduled = condition('PodScheduled');
  const disrupted = condition('DisruptionTarget');
  const sandbox = condition('PodReadyToStartContainers');
  const noNode = scheduled?.status === 'False' && scheduled.reason === 'Unschedulable';
  return {
    ...projectRunPod(pod),
    agent: pod.metadata.labels?.[LABEL_AGENT] ?? '',
    createdAt: Date.parse(pod.metadata.creationTimestamp ?? ''),
    deletionAt: millisOf(pod.metadata.deletionTimestamp),
    phase: pod.status?.phase ?? 'Pending',
    reason: pod.status?.reason,
    message: pod.status?.message,
    node: pod.spec.nodeName,
    sandbox: sandbox === undefined ? undefined : sandbox.status === 'True',
    scheduledAt: scheduled?.status === 'True' ? millisOf(scheduled.lastTransitionTime) : undefined,
    unschedulable: noNode ? (scheduled.message ?? 'no node can take the pod') : undefined,
    disruption: disrupted?.status === 'True' ? disrupted.reason : undefined,
    runner: projectContainer(pod.status?.containerStatuses, RUNNER_CONTAINER),
    tools: projectContainer(pod.status?.initContainerStatuses, TOOLS_CONTAINER),
  };
}

function projectContainer(statuses: readonly ContainerStatus[] | undefined, name: string): ContainerProjection {
  const state = statuses?.find((status) => status.name === name)?.state;
  const { waiting, running, terminated } = state ?? {};
  return {
    waiting: waiting === undefined ? undefined : { reason: waiting.reason ?? '', message: waiting.message ?? '' },
    startedAt: millisOf(running?.startedAt),
    terminated:
      terminated === undefined
        ? undefined
        : { exitCode: terminated.exitCode, reason: terminated.reason ?? '', message: terminated.message ?? '' },
  };
}

export const controllerPodInformer: InformerOptions<Pod, ControllerPod> = {
  type: Pods,
  labelSelector: LABEL_RUN,
  project: projectControllerPod,
  indexes: {
    [BY_RUN]: (pod) => [`${pod.namespace}/${pod.run}`],
    [BY_NODE]: (pod) => (pod.node === undefined ? [] : [pod.node]),
    [UNSCHEDULABLE]: (pod) => {
      if (pod.unschedulable === undefined) return [];
      // A volume in the way concerns its agent alone.
      return [saysVolumeInTheWay(pod.unschedulable) ? agentKey(pod.namespace, pod.agent) : pod.namespace];
    },
    [WITHOUT_ROOM]: ({ phase, deletionAt, unschedulable = '' }) =>
      phase === 'Pending' && deletionAt === undefined && saysNoRoom(unschedulable) ? [ANYWHERE] : [],
  },
};

/** The pod of a run, for whoever checks its token. */
export interface GatewayRunPod extends RunPod {
  jobName: string;
  jobUid: string;
  /** True when all containers have ended for good. */
  ended: boolean;
}

export function projectGatewayRunPod(pod: Pod): GatewayRunPod {
  const owner = controllerOwner(pod);
  return {
    ...projectRunPod(pod),
    jobName: owner?.kind === 'Job' ? owner.name : '',
    jobUid: owner?.kind === 'Job' ? owner.uid : '',
    ended: pod.status?.phase === 'Succeeded' || pod.status?.phase === 'Failed',
  };
}

export const gatewayRunPodInformer: InformerOptions<Pod, GatewayRunPod> = {
  type: Pods,
  labelSelector: LABEL_RUN,
  project: projectGatewayRunPod,
};

/** A pod of ours that serves beside this one: an API pod for API pods, a gateway pod for gateway pods. */
export interface PeerPod {
  name: string;
  uid: string;
  /** Undefined while the pod has none. */
  ip: string | undefined;
  /** Ready and not being deleted: it takes traffic, and can serve the runs that it owns. */
  serving: boolean;
}

export function projectPeerPod(pod: Pod): PeerPod {
  const ready = pod.status?.conditions?.some(({ type, status }) => type === 'Ready' && status === 'True') === true;
  return {
    name: pod.metadata.name,
    uid: pod.metadata.uid ?? '',
    ip: pod.status?.podIP,
    serving: ready && pod.metadata.deletionTimestamp === undefined,
  };
}

/** Labels of the API pods in the namespace of the release. */
export const API_PODS = 'app.kubernetes.io/name=boxwright,app.kubernetes.io/component=api';

/** The pods with these labels in the namespace of the release. */
export function peerPodInformer(namespace: string, labelSelector: string): InformerOptions<Pod, PeerPod> {
  return { type: Pods, namespace, labelSelector, project: projectPeerPod };
}
