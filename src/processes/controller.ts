/**
 * The process `boxwright controller`: composition only. Every replica keeps the caches warm; the one that holds the Lease
 * runs all controllers. Who loses the Lease ends: a clean start is simpler than a clean retreat.
 */
import { PostgresArchive } from '../archive/postgres-archive.js';
import { loadConfig } from '../config/env.js';
import { ControllerConfig } from '../controllers/config.js';
import { createInstallationMetrics } from '../controllers/installation/metrics.js';
import { createRunMetrics } from '../controllers/agent-run/metrics.js';
import { createScheduleMetrics } from '../controllers/agent-schedule/metrics.js';
import { createRetentionMetrics } from '../controllers/retention/metrics.js';
import { createEventWriter } from '../kube/event-writer.js';
import { leaderOnlyWrites } from '../kube/leader-only-writes.js';
import { createLeaseStore } from '../kube/lease-store.js';
import type { KubeApi } from '../kube/types.js';
import { createArchiveMetrics, createControllerMetrics, createEventMetrics } from '../observability/metrics.js';
import type { Clock } from '../runtime/clock.js';
import { EventRecorder } from '../runtime/event-recorder.js';
import { LeaderElector } from '../runtime/leader-elector.js';
import type { Runnable } from '../runtime/manager.js';
import {
  bootstrap,
  cacheProblems,
  cacheRunnables,
  internalServer,
  runGroups,
  type ProcessBase,
  type RunnableGroup,
} from './bootstrap.js';
import { createControllerCaches, createControllerParts } from './controller-parts.js';
import type { ArchiveAccess, ControllerCaches } from './controller-parts.js';
import { createBacklogMetrics } from '../run/start/backlog-metrics.js';
import { LeaderWork, replayable } from './leader-work.js';

export const CONTROLLER_LEASE = 'boxwright-controller';
/** What kubectl shows as the source of our events. */
const EVENT_SOURCE = 'boxwright.dev/controller';

export interface ControllerProcessDeps extends ProcessBase {
  config: ControllerConfig;
  /** For the Lease alone, on a connection of its own: a busy leader must not wait behind its own calls. Absent = `api`. */
  leaseApi?: KubeApi;
  /** Absent when the installation has none. */
  archive?: ArchiveAccess | undefined;
  /** The Lease is lost: the process has to end. */
  onLost: (error: Error) => void;
}

export interface ControllerProcess {
  /** In the order of their start; they stop in the reverse order. */
  groups: RunnableGroup[];
  isLeading: () => boolean;
}

/** Everything of the process but its connection to the cluster. */
export function createControllerProcess(deps: ControllerProcessDeps): ControllerProcess {
  const { config, clock, log, registry } = deps;
  const replays: (() => void)[] = [];
  const caches = createControllerCaches((options) => {
    const { informer, replay } = replayable(deps.informer(options));
    replays.push(replay);
    return informer;
  }, config.releaseNamespace);
  const metrics = createControllerMetrics(registry);
  const partMetrics = {
    runs: createRunMetrics(registry),
    retention: createRetentionMetrics(registry),
    schedules: createScheduleMetrics(registry),
    backlog: createBacklogMetrics(registry),
    installation: createInstallationMetrics(registry),
  };
  const api = leaderOnlyWrites(deps.api, () => elector.isLeading());
  const events = new EventRecorder({
    writer: createEventWriter(api, { controller: EVENT_SOURCE, instance: config.podName }),
    clock,
    log,
    metrics: createEventMetrics(registry),
  });
  const { archive } = deps;
  const work = new LeaderWork({
    parts: createControllerParts({ api, caches, config, clock, log, events, metrics: partMetrics, archive }),
    replays,
    clock,
    log,
    metrics,
  });
  const elector = new LeaderElector({
    name: CONTROLLER_LEASE,
    identity: config.podName,
    store: createLeaseStore(deps.leaseApi ?? deps.api, { namespace: config.releaseNamespace, name: CONTROLLER_LEASE }),
    clock,
    log,
    metrics,
    ...leaseTimes(config.leaseSeconds),
    onStartedLeading: () => work.start(),
    onStoppedLeading: async (why) => {
      await work.stop();
      await events.stop();
      if (why === 'lost') deps.onLost(new Error(`the Lease ${CONTROLLER_LEASE} was lost`));
    },
  });
  return {
    groups: [
      { name: 'probes', runnables: [probes(deps, caches)] },
      { name: 'caches', runnables: cacheRunnables({ ...caches }) },
      { name: 'leader', runnables: [{ name: 'elector', start: () => elector.start(), stop: () => elector.stop() }] },
    ],
    isLeading: () => elector.isLeading(),
  };
}

/** The leader gives up after two thirds of the time, and tries five times before. */
function leaseTimes(seconds: number) {
  const leaseDurationMs = seconds * 1000;
  return { leaseDurationMs, renewDeadlineMs: (leaseDurationMs * 2) / 3, retryPeriodMs: (leaseDurationMs * 2) / 15 };
}

/** A replica that waits is ready as well: it is there to take over. */
function probes(deps: ControllerProcessDeps, caches: ControllerCaches): Runnable {
  return internalServer({ ...deps, port: deps.config.internalPort, problems: () => cacheProblems({ ...caches }) });
}

/** Runs until SIGTERM or until the Lease is lost; resolves with the exit code. */
export async function runController(env: Readonly<Record<string, string | undefined>>): Promise<number> {
  const config = loadConfig(ControllerConfig, env);
  const { base, manager, openApi } = await bootstrap('controller', config, env);
  const archive = openArchive(config, base);
  const { groups } = createControllerProcess({
    ...base,
    config,
    leaseApi: openApi(1),
    archive,
    onLost: (error) => manager.fail(error),
  });
  const tables = archive === undefined ? [] : [archiveRunnable(archive.store, base.clock)];
  return runGroups(manager, [{ name: 'archive', runnables: tables }, ...groups]);
}

/** Makes the tables in the background, so that API and gateway can read before the first run is stored. */
function archiveRunnable(store: PostgresArchive, clock: Clock): Runnable {
  const stopping = new AbortController();
  return {
    name: 'archive',
    start: () => void store.prepare(clock, stopping.signal),
    stop: async () => {
      stopping.abort();
      await store.close();
    },
  };
}

/** More connections than the part that archives has workers: agents purge theirs beside it. */
const ARCHIVE_CONNECTIONS = 6;

function openArchive({ archiveUrl: url }: ControllerConfig, { clock, log, registry }: ProcessBase) {
  if (url === undefined) return undefined;
  const metrics = createArchiveMetrics(registry);
  const store = PostgresArchive.open({
    url,
    clock,
    log,
    metrics,
    connections: ARCHIVE_CONNECTIONS,
    makesTables: true,
  });
  return { store, metrics };
}
