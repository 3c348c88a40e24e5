import { createControllerMetrics, createHttpMetrics, createKubeMetrics, createRegistry } from './metrics.js';
import { createWebhookMetrics } from '../webhook/metrics.js';
import type { Registry } from 'prom-client';

async function value(registry: Registry, name: string, labels: Record<string, string>): Promise<number | undefined> {
  const metric = await registry.getSingleMetric(name)?.get();
  return metric?.values.find((sample) => Object.entries(labels).every(([label, text]) => sample.labels[label] === text))
    ?.value;
}

it('counts HTTP requests by pattern and status, and strangers’ methods as one', async () => {
  const registry = createRegistry('api');
  const http = createHttpMetrics(registry);
  http.observe({ route: '/api/t', method: 'POST', status: 202, seconds: 0.01 });
  http.observe({ route: '/api/t', method: 'M-SEARCH', status: 405, seconds: 0.01 });
  http.observe({ route: '/api/t', method: 'PURGE', status: 405, seconds: 0.01 });
  const name = 'boxwright_http_requests_total';
  expect(await value(registry, name, { route: '/api/t', method: 'POST', status: '202' })).toBe(1);
  expect(await value(registry, name, { route: '/api/t', method: 'other', status: '405' })).toBe(2);
});

it('counts requests to the API server, and keeps watches out of the durations', async () => {
  const registry = createRegistry('api');
  const kube = createKubeMetrics(registry);
  kube.requested({ verb: 'create', resource: 'agentruns', status: 201, seconds: 0.01 });
  kube.requested({ verb: 'watch', resource: 'agentruns', status: 200, seconds: 300 });
  kube.requested({ verb: 'create', resource: 'agentruns', status: 0, seconds: 5 });
  kube.relisted('agentruns');
  kube.watchRestarted('agentruns', 'gone');
  const name = 'boxwright_kube_requests_total';
  expect(await value(registry, name, { verb: 'create', resource: 'agentruns', status: '201' })).toBe(1);
  expect(await value(registry, name, { verb: 'create', resource: 'agentruns', status: 'none' })).toBe(1);
  expect(await value(registry, 'boxwright_relists_total', { resource: 'agentruns' })).toBe(1);
  expect(await value(registry, 'boxwright_watch_restarts_total', { resource: 'agentruns', reason: 'gone' })).toBe(1);
  expect(await registry.metrics()).not.toContain('duration_seconds_count{verb="watch"');
});

it('counts reconciles by outcome and failed ones as retries', async () => {
  const registry = createRegistry('controller');
  const metrics = createControllerMetrics(registry);
  for (const outcome of ['success', 'error', 'conflict', 'requeue_after', 'terminal'] as const) {
    metrics.reconciled('box', outcome, 0.1);
  }
  metrics.queueDepth('box', 3);
  metrics.activeWorkers('box', 2);
  metrics.leading('boxwright-controller', true);
  expect(await value(registry, 'boxwright_controller_reconcile_total', { controller: 'box', outcome: 'error' })).toBe(
    1,
  );
  expect(await value(registry, 'boxwright_workqueue_retries_total', { controller: 'box' })).toBe(2);
  expect(await value(registry, 'boxwright_workqueue_depth', { controller: 'box' })).toBe(3);
  expect(await value(registry, 'boxwright_controller_active_workers', { controller: 'box' })).toBe(2);
  expect(await value(registry, 'boxwright_leader', { lease: 'boxwright-controller' })).toBe(1);
  metrics.leading('boxwright-controller', false);
  expect(await value(registry, 'boxwright_leader', { lease: 'boxwright-controller' })).toBe(0);
});

it('gives every metric the prefix, names its process, and keeps registries apart', async () => {
  const registry = createRegistry('api');
  createHttpMetrics(registry);
  createKubeMetrics(registry);
  createControllerMetrics(registry);
  createWebhookMetrics(registry).called('fired');
  const text = await registry.metrics();
  const names = [...text.matchAll(/^# TYPE (\S+)/gm)].map((match) => match[1]);
  expect(names.length).toBeGreaterThan(10);
  expect(names.filter((name) => !name?.startsWith('boxwright_'))).toEqual([]);
  expect(text).toContain('boxwright_webhook_calls_total{outcome="fired",component="api"} 1');
  expect(() => createHttpMetrics(createRegistry('api'))).not.toThrow();
});
