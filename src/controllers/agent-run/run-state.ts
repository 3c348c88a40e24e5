/** Everything that the caches know about one run, gathered into one plain object. */
import { boxOfNamespace } from '../../api/names.js';
import type { Box } from '../../api/v1alpha1/box.js';
import { volumeOf } from '../workspace-volume/plan.js';
import type { VolumePlan } from '../workspace-volume/plan.js';
import type { RunCaches } from './dependencies.js';
import type { ControllerRun } from '../../projections/agent-run.js';
import type { ControllerAgent } from '../../projections/agent.js';
import type { ControllerJob } from '../../projections/job.js';
import type { NodeProjection } from '../../projections/node.js';
import { BY_RUN } from '../../projections/pod.js';
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
