/** What the Box controller is given. */
import type { Box } from '../../api/v1alpha1/box.js';
import type { Workspace } from '../../api/v1alpha1/workspace.js';
import type { LimitRange, Namespace, NetworkPolicy, ResourceQuota, ServiceAccount } from '../../kube/core-types.js';
import type { Cache, KubeApi } from '../../kube/types.js';
import type { Logger } from '../../observability/logger.js';
import type { Clock } from '../../runtime/clock.js';
import type { AgentChildView, AgentView, RunView, TriggerView } from '../common/informers.js';
import type { RoleBinding } from '../common/role-bindings.js';
import type { NetworkSettings } from './network-policies.js';
import type { ProbeJobView, ProbeSettings } from './probe-job.js';

/** What the run controller knows about a Box. */
export interface BoxCounts {
  /** Runs that hold a Job. */
  running(namespace: string): number;
  /** Runs that wait. */
  queued(namespace: string): number;
  /** Calls back with the namespace when one of its counts changed. Returns unsubscribe. */
  onChange(listener: (namespace: string) => void): () => void;
}

export interface BoxDependencies {
  api: KubeApi;
  clock: Clock;
  log: Logger;
  caches: BoxCaches;
  counts: BoxCounts;
  network: NetworkSettings;
  /** Rejects while the installation is not complete. */
  probeSettings(signal: AbortSignal): Promise<ProbeSettings>;
}

export interface BoxCaches {
  boxes: Cache<Box>;
  workspaces: Cache<Workspace>;
  agents: Cache<AgentView>;
  triggers: Cache<TriggerView>;
  schedules: Cache<AgentChildView>;
  skills: Cache<AgentChildView>;
  memories: Cache<AgentChildView>;
  runs: Cache<RunView>;
  namespaces: Cache<Namespace>;
  serviceAccounts: Cache<ServiceAccount>;
  networkPolicies: Cache<NetworkPolicy>;
  resourceQuotas: Cache<ResourceQuota>;
  limitRanges: Cache<LimitRange>;
  roleBindings: Cache<RoleBinding>;
  probeJobs: Cache<ProbeJobView>;
}

/** What a reconcile works with beside the Box itself. */
export interface BoxInputs {
  namespace: string;
}
