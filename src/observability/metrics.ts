/**
 * Prometheus metrics, all with the prefix `boxwright_`. Every group is made by a function on a registry that the process
 * owns: nothing happens when this module is imported. Labels are names from closed lists (route patterns, kinds,
 * controllers, causes) and never ids, URLs or texts of users (DESIGN 7).
 */
import { Counter, Gauge, Histogram, Registry, collectDefaultMetrics } from 'prom-client';

/** A new registry with the metrics of the Node process (memory, event loop, garbage collection) in it. */
export function createRegistry(component: string): Registry {
  const registry = new Registry();
  registry.setDefaultLabels({ component });
  collectDefaultMetrics({ register: registry, prefix: 'boxwright_' });
  return registry;
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

export interface KubeRequestSample {
  /** get, list, watch, create, replace, patch or delete. */
  verb: string;
  /** Plural name of the kind, for example `agentruns`; a subresource follows a slash. */
  resource: string;
  /** HTTP status, or `error` when there was no answer. */
  status: number | 'error';
  seconds: number;
}

export interface KubeMetrics {
  request(sample: KubeRequestSample): void;
  /** A watch ended and was opened again; `cause` is a word from a closed list (closed, error, stalled, gone). */
  watchRestarted(resource: string, cause: string): void;
  /** The informer read the whole list again. */
  relisted(resource: string, cause: string): void;
}

/** Requests to the Kubernetes API server, and what happened to the watches. */
export function createKubeMetrics(registry: Registry): KubeMetrics {
  const requests = new Counter({
    name: 'boxwright_kube_requests_total',
    help: 'Requests to the Kubernetes API server.',
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
    labelNames: ['resource', 'cause'],
    registers: [registry],
  });
  const relists = new Counter({
    name: 'boxwright_relists_total',
    help: 'Full lists read again after the first one.',
    labelNames: ['resource', 'cause'],
    registers: [registry],
  });
  return {
    request({ verb, resource, status, seconds }) {
      requests.inc({ verb, resource, status: String(status) });
      if (verb !== 'watch') duration.observe({ verb }, seconds);
    },
    watchRestarted: (resource, cause) => restarts.inc({ resource, cause }),
    relisted: (resource, cause) => relists.inc({ resource, cause }),
  };
}

/** What a work queue says about itself when the metrics are read. */
export interface QueueGauge {
  /** Keys that wait. */
  depth(): number;
  /** Keys that are worked on. */
  active(): number;
}

export interface ControllerMetrics {
  /** One reconcile ended; `result` is a word from a closed list (success, requeue, error, conflict). */
  reconciled(controller: string, result: string, seconds: number): void;
  /** A key was put back after a failure. */
  retried(controller: string): void;
  /** Depth and active workers of this queue are read at every scrape. */
  trackQueue(controller: string, queue: QueueGauge): void;
  /** Whether this process holds the named Lease. */
  setLeader(lease: string, leading: boolean): void;
}

/** The metrics of reconcilers, named like those of controller-runtime. */
export function createControllerMetrics(registry: Registry): ControllerMetrics {
  const results = new Counter({
    name: 'boxwright_controller_reconcile_total',
    help: 'Reconciles by result.',
    labelNames: ['controller', 'result'],
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
    help: 'Keys put back after a failure.',
    labelNames: ['controller'],
    registers: [registry],
  });
  const leader = new Gauge({
    name: 'boxwright_leader',
    help: '1 while this process holds the Lease.',
    labelNames: ['lease'],
    registers: [registry],
  });
  const trackQueue = queueGauges(registry);
  return {
    reconciled(controller, result, seconds) {
      results.inc({ controller, result });
      duration.observe({ controller }, seconds);
    },
    retried: (controller) => retries.inc({ controller }),
    trackQueue,
    setLeader: (lease, leading) => leader.set({ lease }, leading ? 1 : 0),
  };
}

function queueGauges(registry: Registry): (controller: string, queue: QueueGauge) => void {
  const queues = new Map<string, QueueGauge>();
  const gauge = (name: string, help: string, read: (queue: QueueGauge) => number) =>
    new Gauge({
      name,
      help,
      labelNames: ['controller'],
      registers: [registry],
      collect() {
        for (const [controller, queue] of queues) this.set({ controller }, read(queue));
      },
    });
  gauge('boxwright_workqueue_depth', 'Keys that wait.', (queue) => queue.depth());
  gauge('boxwright_controller_active_workers', 'Keys that are worked on.', (queue) => queue.active());
  return (controller, queue) => void queues.set(controller, queue);
}
