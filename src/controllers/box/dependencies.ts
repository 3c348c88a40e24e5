/** Dependencies of the Box controller. */
import type { Box } from '../../api/v1alpha1/box.js';
import type { Workspace } from '../../api/v1alpha1/workspace.js';
import type {
  LimitRange,
  Namespace,
  NetworkPolicy,
  ResourceQuota,
  ServiceAccount,
  RoleBinding,
} from '../../kube/core-types.js';
import type { Cache, KubeApi } from '../../kube/types.js';
import type { Logger } from '../../observability/logger.js';
import type { Clock } from '../../runtime/clock.js';
import type { BoxSettings } from './desired.js';
import type { ProbeSettings } from './probe-job.js';
import type { AgentChild } from '../../projections/agent-child.js';
import type { ControllerTrigger } from '../../projections/agent-trigger.js';
import type { ControllerAgent } from '../../projections/agent.js';
import type { ProbeJob } from '../../projections/job.js';

/** What the run controller knows about a Box. */
export interface BoxCounts {
  /** Runs that hold a Job. */
  running(namespace: string): number;
  /** Runs that wait. */
  queued(namespace: string): number;
  /** Calls back with the namespace when one of its counts changed. Returns unsubscribe. */
  onChange(listener: (namespace: string) => void): () => void;
}

export interface BoxDependencies extends BoxSettings {
  api: KubeApi;
  clock: Clock;
  log: Logger;
  caches: BoxCaches;
  counts: BoxCounts;
  /** Rejects while the installation is not complete. */
  probeSettings(signal: AbortSignal): Promise<ProbeSettings>;
}

export interface BoxCaches {
  boxes: Cache<Box>;
  workspaces: Cache<Workspace>;
  agents: Cache<ControllerAgent>;
  triggers: Cache<ControllerTrigger>;
  schedules: Cache<AgentChild>;
  evals: Cache<AgentChild>;
  skills: Cache<AgentChild>;
  memories: Cache<AgentChild>;
  runs: Cache<AgentChild>;
  namespaces: Cache<Namespace>;
  serviceAccounts: Cache<ServiceAccount>;
  networkPolicies: Cache<NetworkPolicy>;
  resourceQuotas: Cache<ResourceQuota>;
  limitRanges: Cache<LimitRange>;
  roleBindings: Cache<RoleBinding>;
  probeJobs: Cache<ProbeJob>;
}

/** Inputs of a reconcile besides the Box itself. */
export interface BoxInputs {
  namespace: string;
}
