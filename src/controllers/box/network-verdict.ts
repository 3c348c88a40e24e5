/** What to do next about the network probe of a Box, and what its report means: pure decisions. */
import { isConditionReason } from '../../api/condition-reasons.js';
import { findCondition } from '../../api/conditions.js';
import type { Box, NetworkProbe } from '../../api/v1alpha1/box.js';
import type { Pod } from '../../kube/core-types.js';
import { PROBE_CONTAINER, ProbeReport } from '../../protocol/network-probe.js';
import type { ProbeTargetName } from '../../protocol/network-probe.js';
import type { KnownCondition, NotReady } from '../common/ready.js';
import { PROBE_DEADLINE_SECONDS, PROBE_JOB } from './probe-job.js';
import type { ProbeJob } from '../../projections/job.js';

export const NETWORK_ENFORCED = 'NetworkEnforced';

/** A good verdict is checked again once a day: the network below the cluster may change. */
const DAY_MS = 86_400_000;
/** A verdict that keeps runs waiting, and a missing one, are checked again after this time. */
const RETRY_MS = 300_000;
/** The Job controller ends a Job at its deadline; when it does not, the probe counts as failed after this time. */
const STUCK_MS = (PROBE_DEADLINE_SECONDS + 120) * 1000;

export type ProbePlan =
  | { do: 'create' }
  /** No longer needed: its report was read, or it probed other policies. */
  | { do: 'delete'; job: ProbeJob }
  /** Its report has not been read yet. */
  | { do: 'read'; job: ProbeJob }
  | { do: 'wait'; ms: number };

export interface ProbeState {
  now: number;
  /** Digest of the present policies and targets. */
  digest: string;
  isRequired: boolean;
  latest: NetworkProbe | undefined;
  job: ProbeJob | undefined;
}

export function planProbe(state: ProbeState): ProbePlan {
  const { now, digest, latest, job } = state;
  if (job !== undefined && job.deleting) return { do: 'wait', ms: RETRY_MS };
  if (job !== undefined && job.digest !== digest) return { do: 'delete', job };
  if (job !== undefined && job.uid !== latest?.jobUid) {
    const leftMs = job.createdAt + STUCK_MS - now;
    return job.ended || leftMs <= 0 ? { do: 'read', job } : { do: 'wait', ms: leftMs };
  }
  // Its findings are in the status of the Box; a Job without a report is kept for a while, so that people can see why.
  if (job !== undefined && latest?.result !== 'ProbeFailed') return { do: 'delete', job };
  const dueInMs = latest?.digest === digest ? Date.parse(latest.probedAt) + intervalMs(state, latest) - now : 0;
  if (dueInMs > 0) return { do: 'wait', ms: dueInMs };
  return job === undefined ? { do: 'create' } : { do: 'delete', job };
}

function intervalMs({ isRequired }: ProbeState, { result }: NetworkProbe): number {
  if (result === 'Enforced') return DAY_MS;
  return result === 'NetworkNotEnforced' && !isRequired ? DAY_MS : RETRY_MS;
}

export interface Verdict {
  result: NetworkProbe['result'];
  message: string;
}

/** The verdict of a probe whose Job has ended; the pod is undefined when none is left. */
export function verdictOf(pod: Pod | undefined, namespace: string): Verdict {
  const ended = pod?.status?.containerStatuses?.find(({ name }) => name === PROBE_CONTAINER)?.state?.terminated;
  const look = `kubectl -n ${namespace} describe job ${PROBE_JOB}`;
  if (ended === undefined) {
    const message = `the pod of the probe did not end within ${PROBE_DEADLINE_SECONDS} s (${look}); it is tried again`;
    return { result: 'ProbeFailed', message };
  }
  const report = readReport(ended.message);
  if (report === undefined) {
    const said = ended.message === undefined || ended.message === '' ? '' : `: ${ended.message.trim().slice(-300)}`;
    const message = `the probe ended with exit code ${ended.exitCode} and without a report (${look}); it is tried again${said}`;
    return { result: 'ProbeFailed', message };
  }
  return verdictOfReport(report);
}

function readReport(message: string | undefined): ProbeReport | undefined {
  try {
    return ProbeReport.safeParse(JSON.parse(message ?? '')).data;
  } catch {
    return undefined;
  }
}

function verdictOfReport({ targets }: ProbeReport): Verdict {
  const reached = new Set(targets.filter(({ reachable }) => reachable).map(({ name }) => name));
  const gateway = reached.has('gateway')
    ? ''
    : ' The gateway could not be reached either: runs would end with ClaimTimeout.';
  if (reached.has('api') || reached.has('kubernetes')) {
    return { result: 'NetworkNotEnforced', message: `${whatIsOpen(reached)} ${WHAT_TO_DO}${gateway}` };
  }
  if (!reached.has('gateway')) return { result: 'GatewayUnreachable', message: GATEWAY_UNREACHABLE };
  return { result: 'Enforced', message: ENFORCED };
}

function whatIsOpen(reached: ReadonlySet<ProbeTargetName>): string {
  const forbidden = 'although the network policies forbid it';
  if (!reached.has('kubernetes')) return `a pod of this Box reached the API pods of Boxwright, ${forbidden}.`;
  if (!reached.has('api')) {
    return `a pod of this Box reached the Kubernetes API server, ${forbidden}; some networks do not filter what goes to the own node of a pod.`;
  }
  return `a pod of this Box reached the API pods of Boxwright and the Kubernetes API server, ${forbidden}.`;
}

const WHAT_TO_DO =
  'Install a CNI plugin that enforces NetworkPolicy, and list public ranges of the cluster in clusterCidrs of the chart; or set spec.egress.requireEnforcement: false, which lets the code of agents reach whatever the network lets pass.';
const GATEWAY_UNREACHABLE =
  'a pod of this Box could not reach the gateway: runs would end with ClaimTimeout. Check the gateway pods and whether the CNI plugin supports the policies of the Box; the probe is repeated every 5 minutes. Nothing that is forbidden was reachable.';
const ENFORCED =
  'a pod of this Box reached the gateway, and neither the API pods of Boxwright nor the Kubernetes API server.';
const STATUS = {
  Enforced: 'True',
  NetworkNotEnforced: 'False',
  GatewayUnreachable: 'Unknown',
  ProbeFailed: 'Unknown',
} as const;

/** The condition of a verdict. */
export function conditionOf({ result, message }: Verdict): KnownCondition {
  return { type: NETWORK_ENFORCED, status: STATUS[result], reason: result, message };
}

/** The condition while there is no verdict about the present policies. */
export function probing(message: string): KnownCondition {
  return { type: NETWORK_ENFORCED, status: 'Unknown', reason: 'NetworkProbing', message };
}

/** The condition while a Job that is none of the Box has the name of the probe: what such a Job reports counts for nothing. */
export function probeNameTaken(namespace: string): KnownCondition {
  const remove = `kubectl delete job -n ${namespace} ${PROBE_JOB}`;
  const message = `Job ${PROBE_JOB} is none of this Box, so its network cannot be probed: ${remove}, and the AgentRun of this name if there is one`;
  return { type: NETWORK_ENFORCED, status: 'Unknown', reason: 'ProbeNameTaken', message };
}

/** A failed probe tells nothing: what an earlier one found about the same policies stays valid. */
export function keepsEarlierVerdict(box: Box, digest: string, { result }: Verdict): boolean {
  if (result !== 'ProbeFailed' || box.status?.networkProbe?.digest !== digest) return false;
  const status = findCondition(box.status.conditions, NETWORK_ENFORCED)?.status;
  return status === 'True' || status === 'False';
}

/** Also required for a Box that was stored before the field existed. */
export function requiresEnforcement(box: { spec: { egress: { requireEnforcement?: boolean } } }): boolean {
  return box.spec.egress.requireEnforcement ?? true;
}

/** Why runs of the Box have to wait for its network; undefined when they need not. */
export function networkNotReady(box: Box): NotReady | undefined {
  if (!requiresEnforcement(box)) return undefined;
  const condition = findCondition(box.status?.conditions, NETWORK_ENFORCED);
  if (condition?.status === 'True') return undefined;
  const reason = condition?.reason ?? '';
  return { reason: isConditionReason(reason) ? reason : 'NetworkProbing', message: condition?.message ?? '' };
}
