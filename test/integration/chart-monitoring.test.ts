/** What the chart makes for the Prometheus operator, whose CRDs no test cluster has: its shape, and that every metric exists. */
import { readFileSync } from 'node:fs';
import { Registry } from 'prom-client';
import { createRunMetrics } from '../../src/controllers/agent-run/metrics.js';
import { createScheduleMetrics } from '../../src/controllers/agent-schedule/metrics.js';
import { createInstallationMetrics } from '../../src/controllers/installation/metrics.js';
import { createRetentionMetrics } from '../../src/controllers/retention/metrics.js';
import { createGatewayMetrics } from '../../src/gateway/metrics.js';
import { createFeedMetrics } from '../../src/processes/gateway-feeds.js';
import { createToolMetrics } from '../../src/mcp/metrics.js';
import {
  createArchiveMetrics,
  createControllerMetrics,
  createEventMetrics,
  createBuildInfo,
  createHttpMetrics,
  createKubeMetrics,
  trackReadiness,
} from '../../src/observability/metrics.js';
import { createBacklogMetrics } from '../../src/run/start/backlog-metrics.js';
import { createDownloadMetrics } from '../../src/downloads/metrics.js';
import { createWebhookMetrics } from '../../src/webhook/metrics.js';
import { renderChart } from '../builders/chart.js';

interface Rule {
  alert: string;
  expr: string;
  for?: string;
  labels: { severity: string };
  annotations: { summary: string; description: string; runbook_url: string };
}

interface Manifest {
  kind: string;
  apiVersion: string;
  metadata: { name: string; namespace: string; labels: Record<string, string> };
  spec: {
    groups?: { name: string; rules: Rule[] }[];
    selector?: { matchLabels: Record<string, string> };
    podMetricsEndpoints?: { port: string; path: string; interval: string }[];
  };
}

interface Panel {
  id: number;
  type: string;
  gridPos: { x: number; y: number };
  targets?: { expr: string }[];
}

/** Metrics of every process, but those of Node itself. */
function exported(): Promise<{ name: string; labels: string[] }[]> {
  const registry = new Registry();
  createBuildInfo(registry, { version: '1', revision: 'a' });
  createHttpMetrics(registry);
  createKubeMetrics(registry);
  createControllerMetrics(registry);
  createEventMetrics(registry);
  createArchiveMetrics(registry);
  createWebhookMetrics(registry);
  createDownloadMetrics(registry);
  createRunMetrics(registry);
  createInstallationMetrics(registry);
  createRetentionMetrics(registry);
  createScheduleMetrics(registry);
  createToolMetrics(registry);
  createFeedMetrics(registry);
  createBacklogMetrics(registry);
  createGatewayMetrics(registry).trackServed(() => 0);
  trackReadiness(registry, () => true);
  const metrics = registry.getMetricsAsArray() as unknown as { name: string; labelNames?: string[] }[];
  return Promise.resolve(metrics.map(({ name, labelNames = [] }) => ({ name, labels: labelNames })));
}

const render = (...values: string[]) => renderChart<Manifest>(values);

const monitors = (manifests: readonly Manifest[]) =>
  manifests.filter(({ apiVersion }) => apiVersion.startsWith('monitoring.coreos.com/'));

async function rules(...values: string[]): Promise<Rule[]> {
  const [rule] = monitors(await render('metrics.prometheusRule.enabled=true', ...values));
  return rule?.spec.groups?.flatMap((group) => group.rules) ?? [];
}

/** Names of metrics in an expression; a histogram counts without its suffix. */
function namesIn(expr: string): string[] {
  return [...expr.matchAll(/\bboxwright_[a-z_]+/g)].map(([name]) => name);
}

describe('monitoring of the chart', () => {
  test('makes nothing by default: the CRDs may be absent', async () => {
    expect(monitors(await render())).toEqual([]);
  });

  test('a PodMonitor takes the internal port of the three processes', async () => {
    const manifests = await render('metrics.podMonitor.enabled=true', 'metrics.podMonitor.labels.release=prom');
    expect(monitors(manifests)).toMatchObject([
      {
        kind: 'PodMonitor',
        metadata: { namespace: 'bw-system', labels: { release: 'prom' } },
        spec: { podMetricsEndpoints: [{ port: 'internal', path: '/metrics', interval: '30s' }] },
      },
    ]);
    const selector = monitors(manifests)[0]?.spec.selector?.matchLabels ?? {};
    const deployments = manifests.filter(({ kind }) => kind === 'Deployment') as unknown as {
      spec: { template: { metadata: { labels: Record<string, string> } } };
    }[];
    expect(deployments).toHaveLength(3);
    for (const { spec } of deployments) expect(spec.template.metadata.labels).toMatchObject(selector);
  });

  test('alerts are complete, of one namespace, and bound in time where a moment means nothing', async () => {
    const all = await rules('metrics.prometheusRule.labels.release=prom');
    expect(all.map(({ alert }) => alert)).toEqual([
      'BoxwrightCallsTurnedAway',
      'BoxwrightTicksTurnedAway',
      'BoxwrightAgentCallsTurnedAway',
      'BoxwrightBacklogFilling',
      'BoxwrightRunsQueuedTooLong',
      'BoxwrightRetentionOverflow',
      'BoxwrightNoLeader',
      'BoxwrightApiNotReady',
      'BoxwrightGatewayNotReady',
      'BoxwrightPodNotReady',
      'BoxwrightWatchSilent',
      'BoxwrightArchiveDown',
      'BoxwrightArchiveBehind',
      'BoxwrightCertificateExpiring',
    ]);
    for (const { alert, expr, labels, annotations, for: bound } of all) {
      expect(alert).toMatch(/^Boxwright[A-Z][A-Za-z]+$/);
      expect(['critical', 'warning']).toContain(labels.severity);
      expect(annotations.summary.length).toBeGreaterThan(10);
      expect(annotations.description.length).toBeGreaterThan(10);
      expect(annotations.runbook_url).toBe(`docs/runbooks.md#${alert.toLowerCase()}`);
      expect(expr.match(/\{/g)?.length).toBe(expr.match(/namespace="bw-system"/g)?.length);
      expect(isBalanced(expr)).toBe(true);
      expect(bound !== undefined || expr.includes('increase(')).toBe(true);
    }
  });

  test('every alert has a runbook, where people read them, and every runbook an alert', async () => {
    const url = 'metrics.prometheusRule.runbookUrl=https://wiki.example.com/boxwright';
    const all = await rules(url);
    expect(all[0]?.annotations.runbook_url).toBe('https://wiki.example.com/boxwright#boxwrightcallsturnedaway');
    const titles = [...readFileSync('docs/runbooks.md', 'utf8').matchAll(/^## (\w+)$/gm)].map(([, title]) => title);
    expect(new Set(titles)).toEqual(new Set(all.map(({ alert }) => alert)));
  });

  test('the dashboard is a ConfigMap that the sidecar finds, and asks for metrics and labels that are exported', async () => {
    expect((await render()).some(({ metadata }) => metadata.name === 'boxwright-dashboard')).toBe(false);
    const manifests = (await render('metrics.grafanaDashboard.enabled=true')) as unknown as {
      kind: string;
      metadata: { name: string; labels: Record<string, string> };
      data: Record<string, string>;
    }[];
    const found = manifests.find(({ metadata }) => metadata.name === 'boxwright-dashboard');
    expect(found).toMatchObject({ kind: 'ConfigMap', metadata: { labels: { grafana_dashboard: '1' } } });
    const { panels } = JSON.parse(found?.data['boxwright.json'] ?? '') as { panels: Panel[] };
    const drawn = panels.filter(({ type }) => type !== 'row');
    expect(new Set(panels.map(({ id }) => id)).size).toBe(panels.length);
    expect(new Set(panels.map(({ gridPos: { x, y } }) => `${x},${y}`)).size).toBe(panels.length);
    const known = new Map((await exported()).map(({ name, labels }) => [name, labels]));
    known.set('boxwright_process_resident_memory_bytes', []);
    for (const expr of drawn.flatMap(({ targets = [] }) => targets.map((target) => target.expr))) {
      const names = namesIn(expr).map((name) => name.replace(/_bucket$/, ''));
      expect(names.length).toBeGreaterThan(0);
      expect(names.filter((name) => !known.has(name))).toEqual([]);
      expect(isBalanced(expr)).toBe(true);
      expect(expr.match(/\{/g)?.length).toBe(expr.match(/namespace="\$namespace"/g)?.length);
      const labels = [...expr.matchAll(/by \(([^)]*)\)/g)].flatMap(([, list = '']) => list.split(', '));
      const scraped = new Set(['pod', 'component', 'le']);
      const missing = labels.filter(
        (label) => !scraped.has(label) && !names.some((name) => known.get(name)?.includes(label)),
      );
      expect(missing).toEqual([]);
    }
  });

  test('how long a run may wait is a value', async () => {
    const expr = async (...values: string[]) =>
      (await rules(...values)).find(({ alert }) => alert === 'BoxwrightRunsQueuedTooLong')?.expr;
    expect(await expr()).toMatch(/ > 86400$/);
    expect(await expr('metrics.prometheusRule.queuedHours=2')).toMatch(/ > 7200$/);
  });

  test('every metric and label of an alert is exported', async () => {
    const known = new Map((await exported()).map(({ name, labels }) => [name, labels]));
    for (const { expr } of await rules()) {
      const names = namesIn(expr);
      expect(names.length).toBeGreaterThan(0);
      expect(names.filter((name) => !known.has(name))).toEqual([]);
      // `namespace`, `pod` and `component` come with the scrape.
      const used = [...expr.matchAll(/([a-z]+)(?:=|=~)"/g)].map(([, label = '']) => label);
      const own = used.filter((label) => !['namespace', 'pod', 'component'].includes(label));
      expect(own.filter((label) => !names.some((name) => known.get(name)?.includes(label)))).toEqual([]);
    }
  });

  test('the outcomes of an alert are there before the first call, so that the first one is a rise', async () => {
    const registry = new Registry();
    createWebhookMetrics(registry);
    createScheduleMetrics(registry);
    createGatewayMetrics(registry);
    for (const name of ['boxwright_schedule_turned_away_total', 'boxwright_gateway_agent_calls_turned_away_total']) {
      const tries = await registry.getSingleMetricAsString(name);
      for (const scope of ['agent', 'box', 'installation']) expect(tries).toContain(`${name}{scope="${scope}"} 0`);
    }
    const text = await registry.getSingleMetricAsString('boxwright_webhook_calls_total');
    for (const outcome of [
      'backlog_agent',
      'backlog_box',
      'backlog_installation',
      'refused',
      'no_answer',
      'lookup_failed',
      'signature_key_missing',
    ]) {
      expect(text).toContain(`boxwright_webhook_calls_total{outcome="${outcome}"} 0`);
    }
  });

  test('docs/operations.md lists every metric and every alert, and no other', async () => {
    const page = readFileSync('docs/operations.md', 'utf8');
    const rows = [...page.matchAll(/^\| `(boxwright_[a-z_]+)`/gm)].map(([, name]) => name);
    expect(new Set(rows)).toEqual(new Set((await exported()).map(({ name }) => name)));
    const alerts = [...page.matchAll(/^\| `(Boxwright[A-Za-z]+)`/gm)].map(([, name]) => name);
    expect(new Set(alerts)).toEqual(new Set((await rules()).map(({ alert }) => alert)));
  });
});

function isBalanced(expr: string): boolean {
  let depth = 0;
  for (const character of expr.replace(/"[^"]*"/g, '')) {
    if ('([{'.includes(character)) depth += 1;
    if (')]}'.includes(character)) depth -= 1;
    if (depth < 0) return false;
  }
  return depth === 0;
}
