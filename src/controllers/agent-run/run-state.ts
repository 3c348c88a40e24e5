/** Everything that the caches know about one run, gathered into one plain object. */
import { isTrue } from '../../api/conditions.js';
import { installMarkOf } from '../../api/installing.js';
import { objectKey } from '../../api/meta.js';
import { acceptedAt, boxNamespace, boxOfNamespace } from '../../api/names.js';
import { isClaimed, isTerminal } from '../../run/status.js';
import type { Box } from '../../api/v1alpha1/box.js';
import { READY } from '../common/ready.js';
import { mustWait, volumeOf } from '../workspace-volume/plan.js';
import type { VolumePlan } from '../workspace-volume/plan.js';
import type { Gate } from './admission/limits-and-fairness.js';
import type { RunCaches, RunDependencies } from './dependencies.js';
import type { QueueFacts, QueuedRun } from './admission/run-queue.js';
import { sessionKeyOf } from '../../run/session/key.js';
import type { ControllerRun } from '../../projections/agent-run.js';
import type { ControllerAgent } from '../../projections/agent.js';
import type { ControllerJob } from '../../projections/job.js';
import type { NodeProjection } from '../../projections/node.js';
import { BY_RUN, UNSCHEDULABLE } from '../../projections/pod.js';
import type { ControllerPod } from '../../projections/pod.js';

export interface RunState {
  key: string;
  run: ControllerRun;
  uid: string;
  namespace: string;
  boxName: string;
  box: Box | undefined;
  agent: ControllerAgent | undefined;
  /** The Job with our owner UID. */
  job: ControllerJob | undefined;
  /** The pod that claimed the run; before a claim the newest one. */
  pod: ControllerPod | undefined;
  /** The node of the pod. */
  node: NodeProjection | undefined;
  /** Where the files of the agent are; undefined without agent or Box. */
  volume: VolumePlan | undefined;
  /** The namespace is being deleted. */
  terminating: boolean;
}

/** Undefined when the run is not in the cache. */
export function gather(caches: RunCaches, key: string): RunState | undefined {
  const run = caches.runs.get(key);
  if (run === undefined) return undefined;
  const namespace = run.metadata.namespace ?? '';
  const boxName = boxOfNamespace(namespace) ?? '';
  const uid = run.metadata.uid ?? '';
  const job = caches.jobs.get(key);
  const pod = podOf(run, caches.pods.byIndex(BY_RUN, key));
  const agent = caches.agents.get(`${namespace}/${run.spec.agent}`);
  const box = caches.boxes.get(boxName);
  return {
    key,
    run,
    uid,
    namespace,
    boxName,
    box,
    agent,
    job: job?.ownerUid === uid ? job : undefined,
    pod,
    node: pod?.node === undefined ? undefined : caches.nodes.get(pod.node),
    volume: agent === undefined || box === undefined ? undefined : volumeOf(caches, agent, box),
    terminating: caches.namespaces.get(namespace)?.metadata.deletionTimestamp !== undefined,
  };
}

function podOf(run: ControllerRun, pods: readonly ControllerPod[]): ControllerPod | undefined {
  const { claim } = run.status ?? {};
  if (claim !== undefined) return pods.find((pod) => pod.uid === claim.podUid);
  return [...pods].sort((a, b) => b.createdAt - a.createdAt)[0];
}

/** The run as the queue sees it; undefined when it neither waits nor works. */
export function queuedRunOf(caches: RunCaches, key: string): QueuedRun | undefined {
  const run = caches.runs.get(key);
  if (run === undefined || isTerminal(run)) return undefined;
  const uid = run.metadata.uid ?? '';
  const hasJob = caches.jobs.get(key)?.ownerUid === uid;
  // A pod outlives its Job: until it is gone it takes up a place, and no second one may start beside it.
  const working = hasJob || isClaimed(run) || caches.pods.byIndex(BY_RUN, key).length > 0;
  const leaves = run.metadata.deletionTimestamp !== undefined || run.spec.cancelRequested === true;
  if (!working && leaves) return undefined;
  return {
    key,
    uid,
    box: boxOfNamespace(run.metadata.namespace ?? '') ?? '',
    agent: run.spec.agent,
    session: sessionKeyOf(run),
    acceptedAt: Date.parse(acceptedAt(run)),
    working,
    ...(run.spec.parent?.waits === true ? { exempt: true } : {}),
  };
}

/** Answers the queue's questions from the caches. */
export function queueFacts({ caches, budgets }: Pick<RunDependencies, 'caches' | 'budgets'>): QueueFacts {
  return {
    box(name) {
      const box = caches.boxes.get(name);
      if (box === undefined) return undefined;
      const { maxRunning, maxRunningPerAgent, weight = 1 } = box.spec;
      return { gate: boxGate(caches, box), maxRunning, maxRunningPerAgent, weight };
    },
    agentGate: (box, name) => {
      const key = `${boxNamespace(box)}/${name}`;
      const agent = caches.agents.get(key);
      return agentGate(agent) ?? volumeGate(caches, box, agent);
    },
    hasNoBudget: (box, agent) => budgets?.exhausted.of(box, agent) !== undefined,
  };
}

/** A volume that is missing, or out of reach of every node with room, holds back the runs of its agent and no others. */
function volumeGate(caches: RunCaches, boxName: string, agent: ControllerAgent | undefined): Gate | undefined {
  const box = caches.boxes.get(boxName);
  if (agent === undefined || box === undefined) return undefined;
  if (mustWait(volumeOf(caches, agent, box))) return 'WorkspaceNotReady';
  const stuck = caches.pods.byIndex(UNSCHEDULABLE, objectKey(agent.metadata)).length > 0;
  return stuck ? 'NoCapacity' : undefined;
}

function boxGate(caches: RunCaches, box: Box): Gate | undefined {
  if (box.metadata.deletionTimestamp !== undefined || !isTrue(box.status?.conditions, READY)) return 'BoxNotReady';
  if (box.spec.paused === true) return 'BoxPaused';
  if (caches.workspaces.get(box.spec.workspace)?.spec.paused === true) return 'WorkspacePaused';
  const full = caches.pods.byIndex(UNSCHEDULABLE, boxNamespace(box.metadata.name)).length > 0;
  return full ? 'NoCapacity' : undefined;
}

/** None of the runs of an agent that is gone is admitted; they are ended when they are reconciled. */
export function agentGate(agent: ControllerAgent | undefined): Gate | undefined {
  if (agent !== undefined && installMarkOf(agent.metadata) !== undefined) return 'AgentInstalling';
  if (agent?.status?.active !== true || agent.metadata.deletionTimestamp !== undefined) return 'AgentInactive';
  return agent.spec.paused ? 'AgentPaused' : undefined;
}
