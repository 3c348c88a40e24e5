/** Which fault comes when. Pure: the same seed gives the same plan. */

/** Pods that lose their process by SIGKILL, and in the next round are deleted without grace. */
export const POD_FAULTS = ['api', 'gateway', 'controller', 'runner'] as const;
/** Components of the native cluster that are killed and started again. */
export const CLUSTER_FAULTS = ['apiserver', 'etcd'] as const;

export type PodFault = (typeof POD_FAULTS)[number];
export type ClusterFault = (typeof CLUSTER_FAULTS)[number];
export type Fault = PodFault | ClusterFault;

export interface PlannedFault {
  /** Milliseconds after the first webhook. */
  atMs: number;
  fault: Fault;
  /** `kill`: SIGKILL of the process; `delete`: the whole pod, as when its node goes. Components are always killed. */
  how: 'kill' | 'delete';
}

export interface PlanOptions {
  durationMs: number;
  /** Mean time between two faults. */
  everyMs: number;
  seed: number;
  /** False where processes on the node cannot be killed: then pods are deleted. */
  clusterFaults: boolean;
}

/** One fault of the cluster follows so many of pods: everything waits while the API server is away. */
const PODS_PER_CLUSTER_FAULT = 6;

/** In order of time; each kind in its turn, a quarter of the interval earlier or later, none after the last webhook. */
export function planFaults({ durationMs, everyMs, seed, clusterFaults }: PlanOptions): PlannedFault[] {
  const random = randomFrom(seed);
  const plan: PlannedFault[] = [];
  let pods = 0;
  let clusters = 0;
  for (let slot = 1; slot * everyMs < durationMs; slot++) {
    const atMs = Math.round((slot + (random() - 0.5) / 2) * everyMs);
    if (atMs >= durationMs) break;
    const ofCluster = clusterFaults && slot % (PODS_PER_CLUSTER_FAULT + 1) === 0;
    const round = Math.floor(pods / POD_FAULTS.length);
    const how = clusterFaults && (ofCluster || round % 2 === 0) ? 'kill' : 'delete';
    const fault = ofCluster ? turn(CLUSTER_FAULTS, clusters++) : turn(POD_FAULTS, pods++);
    plan.push({ atMs, fault, how });
  }
  return plan;
}

function turn<T>(kinds: readonly T[], number: number): T {
  const kind = kinds[number % kinds.length];
  if (kind === undefined) throw new Error('there is no kind of fault');
  return kind;
}

/** mulberry32: numbers in [0, 1), the same for the same seed. */
export function randomFrom(seed: number): () => number {
  let state = seed >>> 0;
  return () => {
    state = (state + 0x6d2b79f5) >>> 0;
    let mixed = Math.imul(state ^ (state >>> 15), state | 1);
    mixed ^= mixed + Math.imul(mixed ^ (mixed >>> 7), mixed | 61);
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 4_294_967_296;
  };
}
