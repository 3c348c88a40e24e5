/** What the run controller is given. */
import type { Box } from '../../api/v1alpha1/box.js';
import type { Workspace } from '../../api/v1alpha1/workspace.js';
import type { Namespace } from '../../kube/core-types.js';
import type { Cache, KubeApi } from '../../kube/types.js';
import type { Logger } from '../../observability/logger.js';
import type { Clock } from '../../runtime/clock.js';
import type { TickGate } from '../agent-schedule/tick-gate.js';
import type { ArchiveGate } from '../archive/gate.js';
import type { BudgetLedger } from '../budget/ledger.js';
import type { JobSettings } from './admission/job.js';
import type { RunMetrics } from './metrics.js';
import type { ControllerRun } from '../../projections/agent-run.js';
import type { ControllerAgent } from '../../projections/agent.js';
import type { ControllerJob } from '../../projections/job.js';
import type { NodeProjection } from '../../projections/node.js';
import type { ControllerPod } from '../../projections/pod.js';
import type { StorageClassProjection } from '../../projections/storage-class.js';
import type { VolumeClaimProjection } from '../../projections/volume-claim.js';

export interface RunCaches {
  runs: Cache<ControllerRun>;
  jobs: Cache<ControllerJob>;
  pods: Cache<ControllerPod>;
  agents: Cache<ControllerAgent>;
  boxes: Cache<Box>;
  workspaces: Cache<Workspace>;
  nodes: Cache<NodeProjection>;
  /** Namespaces of Boxes and Workspaces. */
  namespaces: Cache<Namespace>;
  /** Claims of the volumes of agents. */
  volumeClaims: Cache<VolumeClaimProjection>;
  storageClasses: Cache<StorageClassProjection>;
}

export interface RunDependencies {
  api: Pick<KubeApi, 'get' | 'list' | 'create' | 'patch' | 'delete'>;
  clock: Clock;
  log: Logger;
  caches: RunCaches;
  /** Adds an ended run to the totals of its owners; resolves when it is in all of them. */
  rollUp(run: ControllerRun, signal: AbortSignal): Promise<void>;
  /** Absent without an archive. */
  archive?: ArchiveGate | undefined;
  /** How long a deleted run has to stay for its schedule; absent where nothing is scheduled. */
  tickGate?: TickGate | undefined;
  /** Read for every Job: the CA bundle changes during a rotation. Rejects while the installation is not set up. */
  jobSettings(signal: AbortSignal): Promise<JobSettings>;
  /** Grants parts of budgets to runs; absent where nothing limits them. */
  budgets?: Pick<BudgetLedger, 'admit' | 'release' | 'exhausted'> | undefined;
  /** How many runs of the installation may work at once. */
  maxRunning: number;
  metrics: RunMetrics;
  /** Told when a run lost its Job before anything was executed and its status says so. */
  onReturned?: ((run: ControllerRun, why: { reason: string; message: string }) => void) | undefined;
}
