import { Registry } from 'prom-client';
import { FakeClock } from '../../test/builders/fake-clock.js';
import { recordingLog } from '../../test/builders/log.js';
import { RecordingApi } from '../../test/builders/recording-api.js';
import { NAMESPACE, makeAgent, makeBox, makeWorkspace } from '../../test/builders/run-objects.js';
import { API_VERSION } from '../api/define-resource.js';
import type { KubeObject } from '../api/meta.js';
import { AgentRuns } from '../api/v1alpha1/agent-run.js';
import { AgentSchedules } from '../api/v1alpha1/agent-schedule.js';
import { Agents } from '../api/v1alpha1/agent.js';
import { Boxes } from '../api/v1alpha1/box.js';
import { Workspaces } from '../api/v1alpha1/workspace.js';
import { createRunMetrics } from '../controllers/agent-run/metrics.js';
import { createScheduleMetrics } from '../controllers/agent-schedule/metrics.js';
import { ControllerConfig } from '../controllers/config.js';
import { createInstallationMetrics } from '../controllers/installation/metrics.js';
import { createRetentionMetrics } from '../controllers/retention/metrics.js';
import type { InformerFactory, InformerOptions } from '../kube/types.js';
import { createBacklogMetrics } from '../run/start/backlog-metrics.js';
import { createControllerCaches, createControllerParts } from './controller-parts.js';

const CREATED = Date.parse('2026-05-01T12:00:00Z');
const TICK = Date.parse('2026-05-02T09:00:00Z');
const HALF_A_BOX = 32 * 1_048_576;
const signal = new AbortController().signal;

/** The parts of the process on a store of their own; the watch of runs shows nothing new. */
function setUp() {
  const clock = new FakeClock(CREATED);
  const api = new RecordingApi({ clock });
  api.seed(Workspaces, makeWorkspace());
  api.seed(Boxes, makeBox());
  api.seed(Agents, makeAgent());
  const data = 'x'.repeat(HALF_A_BOX - 1);
  api.seed(AgentRuns, {
    apiVersion: API_VERSION,
    kind: 'AgentRun',
    metadata: { name: 'ada-1', namespace: NAMESPACE },
    spec: { agent: 'ada', input: { encoding: 'gzip', bytes: 1, sha256: 'x', data } },
  });
  const open: InformerFactory = <T extends KubeObject, P>(options: InformerOptions<T, P>) => {
    const informer = api.informer(options);
    if (options.type.plural !== AgentRuns.plural) return informer;
    const shown = [...informer.values()];
    const frozen = { values: () => shown.values(), get: () => undefined, onChange: () => () => undefined };
    return Object.assign(Object.create(informer) as typeof informer, frozen);
  };
  const registry = new Registry();
  const parts = createControllerParts({
    api,
    caches: createControllerCaches(open, 'rel'),
    config: ControllerConfig.parse({
      releaseNamespace: 'rel',
      podName: 'controller-0',
      runnerImage: 'boxwright-runner:test',
      toolsImage: 'boxwright-tools:test',
    }),
    clock,
    log: recordingLog().log,
    events: { record: () => undefined },
    metrics: {
      installation: createInstallationMetrics(registry),
      runs: createRunMetrics(registry),
      retention: createRetentionMetrics(registry),
      schedules: createScheduleMetrics(registry),
      backlog: createBacklogMetrics(registry),
    },
  });
  const part = (name: string) => parts.find((one) => one.name === name) ?? Promise.reject(new Error(`no part ${name}`));
  return { api, clock, registry, part };
}

test('of many ticks at once as many start a run as the backlog budget has room, also while the watch shows none of them', async () => {
  const { api, clock, registry, part } = setUp();
  await (await part('installation')).reconcile('installation', signal);
  const names = Array.from({ length: 10 }, (_, number) => `ada.tick-${number}`);
  for (const name of names) {
    api.seed(AgentSchedules, {
      apiVersion: API_VERSION,
      kind: 'AgentSchedule',
      metadata: { name, namespace: NAMESPACE, creationTimestamp: new Date(CREATED).toISOString() },
      spec: { agent: 'ada', name, description: '', body: 'Go.', cron: '0 9 * * *', timezone: 'UTC', enabled: true },
    });
  }
  const schedules = await part('agent-schedule');
  const all = () => Promise.all(names.map((name) => schedules.reconcile(`${NAMESPACE}/${name}`, signal)));
  await all();
  await clock.advance(TICK - CREATED);
  await all();
  expect(api.all(AgentRuns).filter(({ spec }) => spec.trigger?.origin === 'schedule')).toHaveLength(1);
  expect(await registry.getSingleMetricAsString('boxwright_schedule_turned_away_total')).toContain('{scope="agent"} 9');
});

test('the metrics show how full the fullest agent, the fullest Box and the installation are, beside their limits', async () => {
  const { registry } = setUp();
  const text = await registry.metrics();
  const shown = text.split('\n').filter((line) => /^boxwright_backlog_(bytes|limit_runs)\{/.test(line));
  expect(shown).toEqual([
    'boxwright_backlog_limit_runs{scope="agent"} 5000',
    'boxwright_backlog_limit_runs{scope="box"} 10000',
    'boxwright_backlog_limit_runs{scope="installation"} 20000',
    'boxwright_backlog_bytes{scope="agent"} 33554431',
    'boxwright_backlog_bytes{scope="box"} 33554431',
    'boxwright_backlog_bytes{scope="installation"} 33554431',
  ]);
});
