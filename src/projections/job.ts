/** Projections of Jobs: those of runs, and those that probe the network of a Box. */
import {
  ANNOTATION_BUDGET,
  ANNOTATION_PREVIOUS_RUN,
  ANNOTATION_PROBED,
  LABEL_NETWORK_PROBE,
  LABEL_RUN,
} from '../api/labels.js';
import { millisOf } from '../api/time.js';
import { Jobs } from '../kube/core-types.js';
import type { Job } from '../kube/core-types.js';
import { controllerOwner } from '../kube/owner-references.js';
import type { InformerOptions } from '../kube/types.js';
import { parseGrant } from '../run/usage/budget.js';
import type { Grant } from '../run/usage/budget.js';
import { locationOf } from './meta.js';
import type { Location } from './meta.js';

interface RunJob extends Location {
  /** From its annotation: what the budgets left to the run when it was admitted. */
  grant?: Grant | undefined;
}

function projectRunJob({ metadata }: Job): RunJob {
  const grant = parseGrant(metadata.annotations?.[ANNOTATION_BUDGET]);
  return { ...locationOf(metadata), ...(grant === undefined ? {} : { grant }) };
}

/** The Job of a run, as the controller follows it. */
export interface ControllerJob extends RunJob {
  /** UID of the AgentRun that owns it. */
  ownerUid: string | undefined;
  createdAt: number;
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

export function projectControllerJob(job: Job): ControllerJob {
  const condition = (type: string) => job.status?.conditions?.find((one) => one.type === type && one.status === 'True');
  const failed = condition('Failed');
  const resumed = job.status?.conditions?.find((one) => one.type === 'Suspended' && one.status === 'False');
  const createdAt = Date.parse(job.metadata.creationTimestamp ?? '');
  return {
    ...projectRunJob(job),
    ownerUid: controllerOwner(job)?.uid,
    createdAt,
    deleting: job.metadata.deletionTimestamp !== undefined,
    hasTtl: job.spec.ttlSecondsAfterFinished !== undefined,
    suspended: job.spec.suspend === true,
    activeSince: millisOf(resumed?.lastTransitionTime) ?? createdAt,
    ended: failed !== undefined ? 'Failed' : condition('Complete') === undefined ? undefined : 'Complete',
    failedReason: failed?.reason,
  };
}

export const controllerJobInformer: InformerOptions<Job, ControllerJob> = {
  type: Jobs,
  labelSelector: LABEL_RUN,
  project: projectControllerJob,
};

/** The Job of a run, for whoever checks the token of its pod. */
export interface GatewayJob extends RunJob {
  runName: string;
  runUid: string;
  /** The latest earlier run of the session, if any. */
  previousRun?: string;
}

export function projectGatewayJob(job: Job): GatewayJob {
  const owner = controllerOwner(job);
  const previousRun = job.metadata.annotations?.[ANNOTATION_PREVIOUS_RUN];
  return {
    ...projectRunJob(job),
    runName: owner?.kind === 'AgentRun' ? owner.name : '',
    runUid: owner?.kind === 'AgentRun' ? owner.uid : '',
    ...(previousRun === undefined ? {} : { previousRun }),
  };
}

export const gatewayJobInformer: InformerOptions<Job, GatewayJob> = {
  type: Jobs,
  labelSelector: LABEL_RUN,
  project: projectGatewayJob,
};

/** A Job that probes the network of a Box. */
export interface ProbeJob {
  uid: string;
  namespace: string;
  /** UID of its controller. */
  owner: string | undefined;
  digest: string | undefined;
  createdAt: number;
  deleting: boolean;
  ended: boolean;
}

export function projectProbeJob({ metadata, status }: Job): ProbeJob {
  return {
    uid: metadata.uid ?? '',
    namespace: metadata.namespace ?? '',
    owner: controllerOwner({ metadata })?.uid,
    digest: metadata.annotations?.[ANNOTATION_PROBED],
    createdAt: Date.parse(metadata.creationTimestamp ?? ''),
    deleting: metadata.deletionTimestamp !== undefined,
    ended: (status?.conditions ?? []).some(
      ({ type, status }) => status === 'True' && (type === 'Complete' || type === 'Failed'),
    ),
  };
}

export const probeJobInformer: InformerOptions<Job, ProbeJob> = {
  type: Jobs,
  labelSelector: LABEL_NETWORK_PROBE,
  project: projectProbeJob,
};
