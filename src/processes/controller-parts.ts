/** All controllers of the installation, wired to one set of informers. */
import type { AgentRef } from '../api/names.js';
import { Boxes } from '../api/v1alpha1/box.js';
import { createChildRunController } from '../controllers/agent-run/execution/children.js';
import { createRunControllers } from '../controllers/agent-run/controller.js';
import type { RunMetrics } from '../controllers/agent-run/metrics.js';
import { createRetryController } from '../controllers/agent-run/settlement/retries.js';
import type { ArchiveMetrics } from '../archive/metrics.js';
import type { ArchiveWriter } from '../archive/types.js';
import { createAgentEvalController } from '../controllers/agent-eval/controller.js';
import { createAgentScheduleController } from '../controllers/agent-schedule/controller.js';
import type { ScheduleMetrics } from '../controllers/agent-schedule/metrics.js';
import { createTickGate } from '../controllers/agent-schedule/tick-gate.js';
import { createAgentTriggerController } from '../controllers/agent-trigger/controller.js';
import { createAgentController } from '../controllers/agent/controller.js';
import { createAPIKeyController } from '../controllers/api-key/controller.js';
import { RunArchiver } from '../controllers/archive/archiver.js';
import { createArchiveControllers } from '../controllers/archive/controller.js';
import type { ArchiveControllers } from '../controllers/archive/controller.js';
import { createBudgetController } from '../controllers/budget/controller.js';
import { BudgetLedger } from '../controllers/budget/ledger.js';
import { createBoxController } from '../controllers/box/controller.js';
import { ClusterFileStore } from '../files/cluster-file-store.js';
import { retentionLimits } from '../controllers/config.js';
import type { ControllerConfig } from '../controllers/config.js';
import { createConnectorCatalogController } from '../controllers/connector-catalog/controller.js';
import { createEventController } from '../controllers/events/controller.js';
import type { InstallationMetrics } from '../controllers/installation/metrics.js';
import { CA_SECRET, GATEWAY_TLS_SECRET } from '../controllers/installation/secrets.js';
import { installationSecretInformer } from '../projections/installation-secret.js';
import { createInstallationController, type Installation } from '../controllers/installation/controller.js';
import { createJobSettings } from '../controllers/job-settings.js';
import { createProbeSettings } from '../controllers/probe-settings.js';
import { createRetentionController } from '../controllers/retention/controller.js';
import type { RetentionMetrics } from '../controllers/retention/metrics.js';
import type { ControllerPart } from '../controllers/common/controller-part.js';
import { createTemplatePartsController } from '../controllers/template-parts/controller.js';
import { createTotalsController } from '../controllers/roll-up/controller.js';
import { RollUp } from '../controllers/roll-up/roll-up.js';
import { createWorkspaceController } from '../controllers/workspace/controller.js';
import { orUndefined } from '../kube/errors.js';
import type { Cache, InformerFactory, KubeApi } from '../kube/types.js';
import type { Logger } from '../observability/logger.js';
import type { Clock } from '../runtime/clock.js';
import type { EventSink } from '../runtime/event-recorder.js';
import { exceededBacklog } from '../run/start/backlog-budget.js';
import type { BacklogMetrics } from '../run/start/backlog-metrics.js';
import { countLiveRuns } from '../run/start/backlog.js';
import { countableRuns } from '../run/start/countable-runs.js';
import { OwnRuns } from '../run/start/own-runs.js';
import { controllerEvalInformer } from '../projections/agent-eval.js';
import { controllerMemoryInformer } from '../projections/agent-memory.js';
import { controllerScheduleInformer } from '../projections/agent-schedule.js';
import { controllerSkillInformer } from '../projections/agent-skill.js';
import { controllerTriggerInformer } from '../projections/agent-trigger.js';
import { controllerAgentInformer } from '../projections/agent.js';
import { controllerApiKeyInformer } from '../projections/api-key.js';
import { controllerBoxInformer } from '../projections/box.js';
import { controllerConnectorInformer } from '../projections/connector.js';
import { controllerJobInformer, probeJobInformer } from '../projections/job.js';
import {
  limitRangeInformer,
  namespaceInformer,
  networkPolicyInformer,
  resourceQuotaInformer,
  roleBindingInformer,
  serviceAccountInformer,
} from '../projections/managed-objects.js';
import { nodeInformer } from '../projections/node.js';
import { controllerPodInformer } from '../projections/pod.js';
import { storageClassInformer } from '../projections/storage-class.js';
import { controllerWebhookKeysInformer } from '../projections/webhook-keys.js';
import { volumeClaimInformer } from '../projections/volume-claim.js';
import { controllerWorkspaceInformer } from '../projections/workspace.js';
import { controllerRunInformer } from '../projections/agent-run.js';

export type ControllerCaches = ReturnType<typeof createControllerCaches>;

/** One informer per kind, whoever reads it. */
export function createControllerCaches(open: InformerFactory, releaseNamespace: string) {
  return {
    workspaces: open(controllerWorkspaceInformer),
    boxes: open(controllerBoxInformer),
    agents: open(controllerAgentInformer),
    triggers: open(controllerTriggerInformer),
    webhookKeys: open(controllerWebhookKeysInformer),
    certificates: open(installationSecretInformer(releaseNamespace, GATEWAY_TLS_SECRET)),
    authority: open(installationSecretInformer(releaseNamespace, CA_SECRET)),
    schedules: open(controllerScheduleInformer),
    evals: open(controllerEvalInformer),
    skills: open(controllerSkillInformer),
    memories: open(controllerMemoryInformer),
    apiKeys: open(controllerApiKeyInformer),
    connectors: open(controllerConnectorInformer),
    runs: open(controllerRunInformer),
    jobs: open(controllerJobInformer),
    probeJobs: open(probeJobInformer),
    pods: open(controllerPodInformer),
    nodes: open(nodeInformer),
    volumeClaims: open(volumeClaimInformer),
    storageClasses: open(storageClassInformer),
    namespaces: open(namespaceInformer),
    serviceAccounts: open(serviceAccountInformer),
    networkPolicies: open(networkPolicyInformer),
    resourceQuotas: open(resourceQuotaInformer),
    limitRanges: open(limitRangeInformer),
    roleBindings: open(roleBindingInformer),
  };
}

export interface ControllerPartsDependencies {
  /** Its writes fail while this process does not lead. */
  api: KubeApi;
  caches: ControllerCaches;
  config: ControllerConfig;
  clock: Clock;
  log: Logger;
  /** Takes what people are to see in `kubectl describe`. */
  events: EventSink;
  metrics: {
    installation: InstallationMetrics;
    runs: RunMetrics;
    retention: RetentionMetrics;
    schedules: ScheduleMetrics;
    backlog: BacklogMetrics;
  };
  /** Absent when the installation has none. */
  archive?: ArchiveAccess | undefined;
}

export interface ArchiveAccess {
  store: ArchiveWriter;
  metrics: ArchiveMetrics;
}

/** In no special order: every part is level-triggered and waits for what it needs. */
export function createControllerParts(deps: ControllerPartsDependencies): ControllerPart[] {
  const { api, caches, config, clock, log, metrics } = deps;
  const common = { api, caches, clock, log };
  const namespace = config.releaseNamespace;
  const installation = installationOf(deps);
  const rollUp = new RollUp(api, (box, signal) => workspaceOf(api, caches.boxes, box, signal), log);
  const archive = createArchiving(deps);
  const shownRuns = countLiveRuns(countableRuns(caches.runs), config.retentionMaxFinished);
  metrics.backlog.track(shownRuns);
  const liveRuns = new OwnRuns(shownRuns, caches.runs, clock);
  const backlog = {
    backlogExceeded: (agent: AgentRef) => exceededBacklog(liveRuns, agent),
    reserve: liveRuns.reserve,
  };
  const budgets = new BudgetLedger(caches, clock);
  const events = createEventController({ caches, clock, events: deps.events });
  const runs = createRunControllers({
    ...common,
    onReturned: (run, why) => events.returned(run, why),
    budgets,
    archive: archive?.gate,
    tickGate: createTickGate(caches.schedules, clock),
    maxRunning: config.maxRunning,
    metrics: metrics.runs,
    rollUp: (run, signal) => rollUp.add(run, signal),
    jobSettings: createJobSettings({ api, clock, config, caBundle: () => installation.caBundle() }),
  });
  return [
    installation,
    createWorkspaceController({ ...common, identity: { serviceAccount: config.serviceAccount, namespace } }),
    createAPIKeyController(common),
    createBoxController({
      ...common,
      counts: runs.counts,
      network: { gateway: { namespace, podLabels: GATEWAY_PODS }, clusterCidrs: config.clusterCidrs },
      imagePullSecrets: config.runImagePullSecrets,
      probeSettings: createProbeSettings({ api, clock, config }),
    }),
    createAgentController({ ...common, archive: deps.archive?.store }),
    createAgentTriggerController({ ...common, keyIds: () => installation.keyIds() }),
    createAgentEvalController({ ...common, ...backlog }),
    createAgentScheduleController({
      ...common,
      ...backlog,
      keyring: () => installation.keyring(),
      metrics: metrics.schedules,
    }),
    createBudgetController({ api, runs: caches.runs, ledger: budgets, log }),
    runs.runs,
    runs.admission,
    events.part,
    createChildRunController(common),
    createRetryController({ ...common, ...backlog }),
    createConnectorCatalogController(common),
    createTemplatePartsController({ api, clock, log }),
    createTotalsController({ ...common, releaseNamespace: namespace }),
    createRetention(deps, archive),
    ...(archive === undefined ? [] : [archive.part]),
  ];
}

function createArchiving({
  api,
  caches,
  clock,
  log,
  archive,
}: ControllerPartsDependencies): ArchiveControllers | undefined {
  if (archive === undefined) return undefined;
  const { store, metrics } = archive;
  const archiver = new RunArchiver({
    api,
    store,
    agents: caches.agents,
    workspaceOf: (box, signal) => workspaceOf(api, caches.boxes, box, signal),
  });
  return createArchiveControllers({ api, clock, runs: caches.runs, archiver, store, metrics, log });
}

/** Retention, which removes files before their run. */
function createRetention(deps: ControllerPartsDependencies, archive: ArchiveControllers | undefined): ControllerPart {
  const { api, caches, config, clock, log, metrics } = deps;
  return createRetentionController({
    api,
    caches,
    clock,
    log,
    files: new ClusterFileStore(api),
    limits: retentionLimits(config),
    metrics: metrics.retention,
    archive,
  });
}

const GATEWAY_PODS = { 'app.kubernetes.io/name': 'boxwright', 'app.kubernetes.io/component': 'gateway' };

/** The Workspace of a Box; undefined when the Box is gone. */
async function workspaceOf(
  api: Pick<KubeApi, 'get'>,
  boxes: Pick<Cache<{ spec: { workspace: string } }>, 'get'>,
  name: string,
  signal: AbortSignal,
): Promise<string | undefined> {
  const known = boxes.get(name);
  if (known !== undefined) return known.spec.workspace;
  const live = await orUndefined(api.get(Boxes, { name }, { signal }));
  return live?.spec.workspace;
}

function installationOf({ api, caches, clock, log, config, metrics }: ControllerPartsDependencies): Installation {
  const { releaseNamespace: namespace, gatewayService } = config;
  const options = { api, caches, clock, log, namespace, gatewayService };
  return createInstallationController({ ...options, metrics: metrics.installation });
}
