/** What the handlers of tools work with: the use-cases' dependencies, bound once per process. */
import { randomBytes } from 'node:crypto';
import type { Keyring } from '../api/keyring.js';
import type { ArchiveReader } from '../archive/types.js';
import type { KubeApi } from '../kube/types.js';
import type { Clock } from '../runtime/clock.js';
import type { ChildDeps } from '../services/agents/agent-children.js';
import type { AgentDeps } from '../services/agents/agents.js';
import { exceededBacklog } from '../run/start/backlog-budget.js';
import type { ApiCaches } from '../services/caches.js';
import type { KeyedWaiter } from '../kube/keyed-waiter.js';
import type { OwnRuns } from '../run/start/own-runs.js';
import { FileLinks } from '../services/files/file-links.js';
import type { LiveFeeds } from '../services/runs/live-feed.js';
import type { RunDeps, StartDeps } from '../services/runs/runs.js';
import type { CatalogSource } from '../models/catalog-source.js';
import type { ModelDeps } from '../services/models/models.js';
import type { ScopeDeps } from '../services/scope.js';
import { findStartedRun, startRun } from '../run/start/start-run.js';
import type { StartRunDeps, StartRunRequest } from '../run/start/start-run.js';
import type { TemplateDeps } from '../services/templates/find.js';
import type { TriggerDeps } from '../services/triggers/triggers.js';
import type { WriteBarrier } from '../services/write-barrier.js';
import type { FireDeps } from '../run/start/fire-trigger.js';
import type { ApiRun } from '../projections/agent-run.js';
import type { ApiAgent } from '../projections/agent.js';
import { lastOfSession } from '../services/runs/find-run.js';

export interface ToolServices {
  scope: ScopeDeps;
  models: ModelDeps;
  agents: AgentDeps;
  triggers: TriggerDeps;
  runs: RunDeps;
  skills: ChildDeps;
  schedules: ChildDeps & StartDeps;
  templates: TemplateDeps;
  /** For test_trigger: a test fires exactly as the URL does. */
  fire: FireDeps;
}

export interface ToolServicesOptions {
  caches: ApiCaches;
  api: KubeApi;
  clock: Clock;
  barrier: WriteBarrier;
  keyring: () => Keyring | undefined;
  publicUrl: string;
  agentWaiter: Pick<KeyedWaiter<ApiAgent>, 'wait'>;
  runWaiter: Pick<KeyedWaiter<ApiRun>, 'wait'>;
  /** Live runs, with those that this process has started and its cache does not show yet. */
  liveRuns: OwnRuns;
  /** What working runs do now. */
  feeds: LiveFeeds;
  /** What is known of models. */
  catalog: Pick<CatalogSource, 'models'>;
  /** Absent when the installation has none. */
  archive?: ArchiveReader | undefined;
}

export function createToolServices(options: ToolServicesOptions): ToolServices {
  const { caches, api, clock, barrier, keyring, publicUrl, liveRuns } = options;
  const fileLinks = new FileLinks({ keyring, publicUrl, clock });
  const scope = { caches, api, clock, fileLinks, archive: options.archive };
  const randomHex = (bytes: number) => randomBytes(bytes).toString('hex');
  const startRun = boundStartRun(options);
  const start: StartDeps = { clock, startRun, backlogExceeded: (agent) => exceededBacklog(liveRuns, agent) };
  return {
    scope,
    models: { caches, catalog: options.catalog },
    agents: { ...scope, barrier, waiter: options.agentWaiter, randomHex },
    triggers: { ...scope, barrier, keyring, publicUrl, randomHex },
    runs: { ...scope, ...start, barrier, waiter: options.runWaiter, feeds: options.feeds },
    skills: { ...scope, barrier, randomHex },
    schedules: { ...scope, ...start, barrier, randomHex },
    templates: { ...scope, ...start, barrier, waiter: options.agentWaiter, randomHex, keyring },
    fire: {
      startRun,
      findStartedRun: (request) => findStartedRun({ api, clock }, request),
      backlog: liveRuns,
      clock,
    },
  };
}

/** {@link startRun} as the tools and the trigger URL use it. */
export function boundStartRun({
  caches,
  api,
  clock,
  liveRuns,
}: Pick<ToolServicesOptions, 'caches' | 'api' | 'clock' | 'liveRuns'>) {
  const deps: StartRunDeps = {
    api,
    clock,
    lastOfSession: (namespace, sessionId) => lastOfSession(caches.AgentRun, namespace, sessionId),
    reserve: liveRuns.reserve,
  };
  return (request: StartRunRequest, signal: AbortSignal) => startRun(deps, request, signal);
}
