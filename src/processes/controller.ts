/**
 * The process `boxwright controller`: composition only. Every replica keeps the caches warm; the one that holds the Lease
 * runs all controllers. Who loses the Lease ends: a clean start is simpler than a clean retreat.
 */
import type { Registry } from 'prom-client';
import { PostgresArchive } from '../archive/postgres-archive.js';
import { loadConfig } from '../config/env.js';
import { ControllerConfig } from '../controllers/config.js';
import { createRunMetrics } from '../controllers/agent-run/metrics.js';
import { createScheduleMetrics } from '../controllers/agent-schedule/metrics.js';
import { createRetentionMetrics } from '../controllers/retention/metrics.js';
import { createKubeApi } from '../kube/client.js';
import { createEventWriter } from '../kube/event-writer.js';
import { createInformer } from '../kube/informer.js';
import { leaderOnlyWrites } from '../kube/leader-only-writes.js';
import { loadConnection } from '../kube/kube-config.js';
import { createLeaseStore } from '../kube/lease-store.js';
import { ServerClock } from '../kube/server-clock.js';
import { createTransport } from '../kube/transport.js';
import type { Informer, KubeApi } from '../kube/types.js';
import { createLogger } from '../observability/logger.js';
import type { Logger } from '../observability/logger.js';
import {
  createArchiveMetrics,
  createControllerMetrics,
  createEventMetrics,
  createKubeMetrics,
  createRegistry,
} from '../observability/metrics.js';
import { startInternalServer } from '../observability/probes.js';
import type { InternalServer, Problem } from '../observability/probes.js';
import { systemClock } from '../runtime/clock.js';
import type { Clock } from '../runtime/clock.js';
import { EventRecorder } from '../runtime/event-recorder.js';
import { LeaderElector } from '../runtime/leader-elector.js';
import { Manager } from '../runtime/manager.js';
import type { Runnable } from '../runtime/manager.js';
import { createControllerCaches, createControllerParts } from './controller-parts.js';
import type { ArchiveAccess, ControllerCaches, InformerFactory } from './controller-parts.js';
import { createBacklogMetrics } from '../run/start/backlog-metrics.js';
import { LeaderWork, replayable } from './leader-work.js';

export const CONTROLLER_LEASE = 'boxwright-controller';
/** What kubectl shows as the source of our events. */
const EVENT_SOURCE = 'boxwright.dev/controller';

export interface ControllerProcessDeps {
  config: ControllerConfig;
  api: KubeApi;
  /** For the Lease alone, on a connection of its own: a busy leader must not wait behind its own calls. Absent = `api`. */
  leaseApi?: KubeApi;
  informer: InformerFactory;
  clock: Clock;
  registry: Registry;
  log: Logger;
  /** Absent when the installation has none. */
  archive?: ArchiveAccess | undefined;
  /** The Lease is lost: the process has to end. */
  onLost: (error: Error) => void;
}

export interface ControllerProcess {
  /** In the order of their start; they stop in the reverse order. */
  groups: { name: string; runnables: Runnable[] }[];
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
  });
  const metrics = createControllerMetrics(registry);
  const partMetrics = {
    runs: createRunMetrics(registry),
    retention: createRetentionMetrics(registry),
    schedules: createScheduleMetrics(registry),
    backlog: createBacklogMetrics(registry),
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
      { name: 'probes', runnables: [internalServer(deps, caches)] },
      { name: 'caches', runnables: cacheRunnables(caches) },
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

function cacheRunnables(caches: ControllerCaches): Runnable[] {
  return Object.entries(caches).map(([name, informer]: [string, Informer<unknown>]) => ({
    name: `informer ${name}`,
    start: async () => {
      informer.start();
      await informer.synced;
    },
    stop: () => informer.stop(),
  }));
}

/** A replica that waits is ready as well: it is there to take over. */
function cacheProblems(caches: ControllerCaches): Problem[] {
  return Object.entries(caches)
    .filter(([, informer]) => !informer.isHealthy())
    .map(([name]) => ({ check: `informer ${name}`, message: 'has no current view of the cluster' }));
}

function internalServer({ config, registry, clock, log }: ControllerProcessDeps, caches: ControllerCaches): Runnable {
  let server: InternalServer | undefined;
  return {
    name: 'internal server',
    start: async () => {
      server = await startInternalServer({
        port: config.internalPort,
        registry,
        live: () => [],
        ready: () => cacheProblems(caches),
        logger: log,
        clock,
      });
    },
    stop: async () => server?.stop(),
  };
}

/** Runs until SIGTERM or until the Lease is lost; resolves with the exit code. */
export async function runController(env: Readonly<Record<string, string | undefined>>): Promise<number> {
  const config = loadConfig(ControllerConfig, env);
  const clock = new ServerClock(systemClock);
  const log = createLogger('controller', config.logLevel);
  const registry = createRegistry('controller');
  const metrics = createKubeMetrics(registry);
  const connection = await loadConnection({
    clock,
    env: { ...env },
    ...(config.kubeconfig === undefined ? {} : { kubeconfig: config.kubeconfig }),
  });
  const options = { clock, serverTime: clock, userAgent: 'boxwright-controller', metrics };
  const transport = createTransport(connection, options);
  const leaseTransport = createTransport(connection, { ...options, connections: 1 });
  const manager = new Manager({ log, clock });
  const archive = openArchive({ config, clock, log, registry });
  const { groups } = createControllerProcess({
    config,
    api: createKubeApi(transport),
    leaseApi: createKubeApi(leaseTransport),
    informer: (options) =>
      createInformer(transport, options, { clock, log, metrics, resyncMs: config.resyncSeconds * 1000 }),
    clock,
    registry,
    log,
    archive,
    onLost: (error) => manager.fail(error),
  });
  if (archive !== undefined) {
    manager.addGroup('archive', [archiveRunnable(archive.store, clock)]);
  }
  const closeTransports = async () => void (await Promise.all([transport.close(), leaseTransport.close()]));
  manager.addGroup('transport', [{ name: 'transport', start: () => undefined, stop: closeTransports }]);
  for (const group of groups) manager.addGroup(group.name, group.runnables);
  return await manager.run();
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

function openArchive({
  config,
  clock,
  log,
  registry,
}: Pick<ControllerProcessDeps, 'config' | 'clock' | 'log' | 'registry'>) {
  if (config.archiveUrl === undefined) return undefined;
  const metrics = createArchiveMetrics(registry);
  const store = PostgresArchive.open({
    url: config.archiveUrl,
    clock,
    log,
    metrics,
    connections: ARCHIVE_CONNECTIONS,
    makesTables: true,
  });
  return { store, metrics };
}
