/**
 * What api, gateway and controller have in common: log, clock and metrics, the way to the API server, caches, and the
 * port of probes and metrics. Each process file composes the rest.
 */
import type { Registry } from 'prom-client';
import { PRODUCT_REVISION, PRODUCT_VERSION } from '../config/version.js';
import { createKubeApi } from '../kube/client.js';
import { createInformer } from '../kube/informer.js';
import { loadConnection } from '../kube/kube-config.js';
import { ServerClock } from '../kube/server-clock.js';
import { createTransport } from '../kube/transport.js';
import type { Informer, InformerFactory, KubeApi } from '../kube/types.js';
import { createLogger, type Logger } from '../observability/logger.js';
import { createBuildInfo, createKubeMetrics, createRegistry } from '../observability/metrics.js';
import { startInternalServer, type InternalRoute, type InternalServer, type Problem } from '../observability/probes.js';
import { systemClock, type Clock } from '../runtime/clock.js';
import { Manager, type Runnable } from '../runtime/manager.js';

/** What the parts of a process are built on. */
export interface ProcessBase {
  log: Logger;
  clock: Clock;
  registry: Registry;
  api: KubeApi;
  informer: InformerFactory;
}

/** Runnables that start together and stop together. */
export interface RunnableGroup {
  name: string;
  runnables: readonly Runnable[];
}

export interface Bootstrapped {
  base: ProcessBase;
  /** Its first group, so the last to stop, are the connections to the API server. */
  manager: Manager;
  /** A further client with connections of its own, which close with the first. */
  openApi: (connections: number) => KubeApi;
}

export interface BootstrapConfig {
  logLevel: string;
  resyncSeconds: number;
  /** Wins over KUBECONFIG. */
  kubeconfig?: string | undefined;
}

/** Connects the process to its API server; nothing is asked yet. */
export async function bootstrap(
  name: string,
  { logLevel, resyncSeconds, kubeconfig }: BootstrapConfig,
  env: Readonly<Record<string, string | undefined>>,
): Promise<Bootstrapped> {
  const clock = new ServerClock(systemClock);
  const log = createLogger(name, logLevel);
  log.info({ version: PRODUCT_VERSION, revision: PRODUCT_REVISION }, 'starting');
  const registry = createRegistry(name);
  createBuildInfo(registry, { version: PRODUCT_VERSION, revision: PRODUCT_REVISION });
  const metrics = createKubeMetrics(registry);
  const connection = await loadConnection({
    clock,
    env: { ...env },
    ...(kubeconfig === undefined ? {} : { kubeconfig }),
  });
  const options = {
    clock,
    serverTime: clock,
    userAgent: `boxwright-${name}/${PRODUCT_VERSION} (${PRODUCT_REVISION})`,
    metrics,
  };
  const transport = createTransport(connection, options);
  const transports = [transport];
  const informer: InformerFactory = (of) =>
    createInformer(transport, of, { clock, log, metrics, resyncMs: resyncSeconds * 1000 });
  const manager = new Manager({ log, clock });
  manager.addGroup('transport', [
    closing('transport', async () => void (await Promise.all(transports.map((one) => one.close())))),
  ]);
  return {
    base: { log, clock, registry, api: createKubeApi(transport), informer },
    manager,
    openApi: (connections) => {
      const further = createTransport(connection, { ...options, connections });
      transports.push(further);
      return createKubeApi(further);
    },
  };
}

/** Runs the groups one after the other until SIGTERM or a failure; the exit code. */
export function runGroups(manager: Manager, groups: readonly RunnableGroup[]): Promise<number> {
  for (const { name, runnables } of groups) manager.addGroup(name, runnables);
  return manager.run();
}

/** Something that is there from the beginning and has to be closed. */
export function closing(name: string, close: () => Promise<unknown> | undefined): Runnable {
  return { name, start: () => undefined, stop: async () => void (await close()) };
}

type Caches = Readonly<Record<string, Informer<unknown>>>;

/** One runnable a cache: it has started with its first full list. */
export function cacheRunnables(caches: Caches): Runnable[] {
  return Object.entries(caches).map(([name, informer]) => ({
    name: `informer ${name}`,
    start: async () => {
      informer.start();
      await informer.synced;
    },
    stop: () => informer.stop(),
  }));
}

/** The caches that are behind, for the readiness of the pod. */
export function cacheProblems(caches: Caches): Problem[] {
  return Object.entries(caches)
    .filter(([, informer]) => !informer.isHealthy())
    .map(([name]) => ({ check: `informer ${name}`, message: 'has no current view of the cluster' }));
}

export interface InternalServerParts extends Pick<ProcessBase, 'log' | 'clock' | 'registry'> {
  port: number;
  /** Why the pod is not ready, besides that it stops. */
  problems: () => Problem[];
  routes?: Record<string, InternalRoute>;
}

/** Health, metrics and calls between our pods. */
export function internalServer(parts: InternalServerParts): Runnable {
  const { port, registry, clock, log: logger, problems, routes = {} } = parts;
  let server: InternalServer | undefined;
  return {
    name: 'internal server',
    start: async (stopping) => {
      const ready = () => [...(stopping.aborted ? [STOPPING] : []), ...problems()];
      server = await startInternalServer({ port, registry, clock, logger, routes, live: () => [], ready });
    },
    stop: async () => server?.stop(),
  };
}

const STOPPING: Problem = { check: 'process', message: 'is stopping' };
