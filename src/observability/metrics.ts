/**
 * Prometheus metrics, all with the prefix `boxwright_`. Every group is made by a function on a registry that the process
 * owns: nothing happens when this module is imported. Labels are names from closed lists (route patterns, kinds,
 * controllers, causes) and never ids, URLs or texts of users.
 */
import { Counter, Gauge, Histogram, Registry, collectDefaultMetrics } from 'prom-client';
import type { ArchiveMetrics } from '../archive/metrics.js';
import type { KubeMetrics } from '../kube/metrics.js';
import type { ControllerMetrics, EventMetrics, LeaderMetrics } from '../runtime/metrics.js';

/** A new registry with the metrics of the Node process (memory, event loop, garbage collection) in it. */
export function createRegistry(component: string): Registry {
  const registry = new Registry();
  registry.setDefaultLabels({ component });
  collectDefaultMetrics({ register: registry, prefix: 'boxwright_' });
  return registry;
}

/** `boxwright_build_info`: always 1; its labels say which build runs. */
export function createBuildInfo(registry: Registry, build: { version: string; revision: string }): void {
  const info = new Gauge({
    name: 'boxwright_build_info',
    help: 'Always 1: which build this process is.',
    labelNames: ['version', 'revision'],
    registers: [registry],
  });
  info.set(build, 1);
}

export interface HttpRequestSample {
  /** The pattern, for example `/api/t/:agent/:slug/:token`; never the URL. */
  route: string;
  method: string;
  status: number;
  seconds: number;
}

export interface HttpMetrics {
  observe(sample: HttpRequestSample): void;
}

/** The methods that stand in a label as they are; callers may send any token. */
const KNOWN_METHODS = new Set(['GET', 'HEAD', 'POST', 'PUT', 'PATCH', 'DELETE', 'OPTIONS']);

/** `boxwright_http_requests_total` and `boxwright_http_request_duration_seconds`. */
export function createHttpMetrics(registry: Registry): HttpMetrics {
  const requests = new Counter({
    name: 'boxwright_http_requests_total',
    help: 'Answered HTTP requests.',
    labelNames: ['route', 'method', 'status'],
    registers: [registry],
  });
  const duration = new Histogram({
    name: 'boxwright_http_request_duration_seconds',
    help: 'Time from the head of a request to the end of its answer.',
    labelNames: ['route'],
    buckets: [0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 5, 15, 60, 600],
    registers: [registry],
  });
  return {
    observe({ route, method, status, seconds }) {
      requests.inc({ route, method: KNOWN_METHODS.has(method) ? method : 'other', status: String(status) });
      duration.observe({ route }, seconds);
    },
  };
}

/** `boxwright_ready`: what the readiness probe would say now. */
export function trackReadiness(registry: Registry, isReady: () => boolean): void {
  registry.removeSingleMetric('boxwright_ready');
  const ready: Gauge = new Gauge({
    name: 'boxwright_ready',
    help: '1 while the readiness probe of this process is green.',
    registers: [registry],
    collect: () => ready.set(isReady() ? 1 : 0),
  });
}

/** Requests to the Kubernetes API server, and what happened to the watches. */
export function createKubeMetrics(registry: Registry): KubeMetrics {
  const requests = new Counter({
    name: 'boxwright_kube_requests_total',
    help: 'Requests to the Kubernetes API server; status `none` = no answer.',
    labelNames: ['verb', 'resource', 'status'],
    registers: [registry],
  });
  const duration = new Histogram({
    name: 'boxwright_kube_request_duration_seconds',
    help: 'Time to the answer of the Kubernetes API server; watches are not in it.',
    labelNames: ['verb'],
    buckets: [0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 5, 15],
    registers: [registry],
  });
  const restarts = new Counter({
    name: 'boxwright_watch_restarts_total',
    help: 'Watches that ended and were opened again.',
    labelNames: ['resource', 'reason'],
    registers: [registry],
  });
  const relists = new Counter({
    name: 'boxwright_relists_total',
    help: 'Whole lists read by informers, the first one included.',
    labelNames: ['resource'],
    registers: [registry],
  });
  return {
    requested({ verb, resource, status, seconds }) {
      requests.inc({ verb, resource, status: status === 0 ? 'none' : String(status) });
      if (verb !== 'watch') duration.observe({ verb }, seconds);
    },
    relisted: (resource) => relists.inc({ resource }),
    watchRestarted: (resource, reason) => restarts.inc({ resource, reason }),
  };
}

/** The metrics of reconcilers and Leases, named like those of controller-runtime. */
export function createControllerMetrics(registry: Registry): ControllerMetrics & LeaderMetrics {
  const results = new Counter({
    name: 'boxwright_controller_reconcile_total',
    help: 'Reconciles by outcome.',
    labelNames: ['controller', 'outcome'],
    registers: [registry],
  });
  const duration = new Histogram({
    name: 'boxwright_controller_reconcile_duration_seconds',
    help: 'Time of one reconcile.',
    labelNames: ['controller'],
    buckets: [0.001, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 5, 30],
    registers: [registry],
  });
  const retries = new Counter({
    name: 'boxwright_workqueue_retries_total',
    help: 'Keys put back because their reconcile failed.',
    labelNames: ['controller'],
    registers: [registry],
  });
  const depth = gauge(registry, 'boxwright_workqueue_depth', 'Keys that wait for a worker.', 'controller');
  const active = gauge(registry, 'boxwright_controller_active_workers', 'Workers that are busy.', 'controller');
  const leader = gauge(registry, 'boxwright_leader', '1 while this process holds the Lease.', 'lease');
  return {
    reconciled(controller, outcome, seconds) {
      results.inc({ controller, outcome });
      duration.observe({ controller }, seconds);
      if (outcome === 'error' || outcome === 'conflict') retries.inc({ controller });
    },
    queueDepth: (controller, keys) => depth.set({ controller }, keys),
    activeWorkers: (controller, workers) => active.set({ controller }, workers),
    leading: (lease, isLeading) => leader.set({ lease }, isLeading ? 1 : 0),
  };
}

/** Kubernetes Events that nobody gets to see. */
export function createEventMetrics(registry: Registry): EventMetrics {
  const dropped = new Counter({
    name: 'boxwright_events_dropped_total',
    help: 'Kubernetes Events that were not written, by cause.',
    labelNames: ['cause'],
    registers: [registry],
  });
  return { dropped: (cause) => dropped.inc({ cause }) };
}

/** Calls of the archive, whether it answers, and what waits for it. */
export function createArchiveMetrics(registry: Registry): ArchiveMetrics {
  const calls = new Counter({
    name: 'boxwright_archive_calls_total',
    help: 'Calls of the archive.',
    labelNames: ['operation', 'result'],
    registers: [registry],
  });
  const duration = new Histogram({
    name: 'boxwright_archive_call_duration_seconds',
    help: 'Time of one call of the archive.',
    labelNames: ['operation'],
    buckets: [0.001, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 5, 15],
    registers: [registry],
  });
  const up = new Gauge({
    name: 'boxwright_archive_up',
    help: '0 while the last call of the archive did not reach it; only in processes that use one.',
    registers: [registry],
  });
  up.set(1);
  const waiting = new Gauge({
    name: 'boxwright_archive_waiting_runs',
    help: 'Removed runs that stay in the cluster until they are archived.',
    registers: [registry],
  });
  return {
    called(operation, result, seconds) {
      calls.inc({ operation, result });
      duration.observe({ operation }, seconds);
    },
    reachable: (isReachable) => up.set(isReachable ? 1 : 0),
    waiting: (runs) => waiting.set(runs),
  };
}

function gauge(registry: Registry, name: string, help: string, label: string): Gauge {
  return new Gauge({ name, help, labelNames: [label], registers: [registry] });
}
