/** Ticks on a real API server: two controllers that both believe to lead, a clock that jumps, a run that is removed. */
import { createSecretKey } from 'node:crypto';
import { API_VERSION } from '../../src/api/define-resource.js';
import type { Keyring } from '../../src/api/keyring.js';
import { AgentRuns } from '../../src/api/v1alpha1/agent-run.js';
import { AgentScheduleSpec, AgentSchedules } from '../../src/api/v1alpha1/agent-schedule.js';
import type { AgentSchedule } from '../../src/api/v1alpha1/agent-schedule.js';
import { AgentSpec, Agents } from '../../src/api/v1alpha1/agent.js';
import { createAgentScheduleController } from '../../src/controllers/agent-schedule/controller.js';
import { createInformer } from '../../src/kube/informer.js';
import type { KubeApi } from '../../src/kube/types.js';
import { createLogger } from '../../src/observability/logger.js';
import { systemClock } from '../../src/runtime/clock.js';
import type { Clock } from '../../src/runtime/clock.js';
import { Controller } from '../../src/runtime/controller.js';
import { tickRunName } from '../../src/schedule/run-name.js';
import { nextTick } from '../../src/schedule/timing.js';
import { eventually, startApiServer } from '../builders/api-server.js';
import type { TestApiServer } from '../builders/api-server.js';
import { controllerScheduleInformer } from '../../src/projections/agent-schedule.js';
import { controllerAgentInformer } from '../../src/projections/agent.js';

const KEY = createSecretKey(Buffer.alloc(32, 9));
const KEYRING: Keyring = { current: 'k1', keys: new Map([['k1', KEY]]) };
const HOUR_MS = 3_600_000;

let server: TestApiServer;
let namespace: string;
let agentUid: string | undefined;

beforeAll(async () => {
  server = await startApiServer();
  await server.applyCrds();
  namespace = await server.createNamespace('bw-ticks');
  const agent = await server.api.create(Agents, {
    apiVersion: API_VERSION,
    kind: 'Agent',
    metadata: { name: 'news', namespace },
    spec: AgentSpec.parse({ name: 'News' }),
  });
  agentUid = agent.metadata.uid;
  const status = { status: { active: true } };
  await server.api.patch(Agents, { namespace, name: 'news' }, status, { type: 'merge', subresource: 'status' });
});

afterAll(async () => {
  await server.stop();
});

/** The system's clock, some time ahead. */
class JumpingClock implements Clock {
  ahead = 0;
  now = () => systemClock.now() + this.ahead;
  monotonic = () => systemClock.monotonic();
  after = (ms: number, callback: () => void) => systemClock.after(ms, callback);
}

/** A controller process of its own: caches, work queue, and how often it wrote a status. */
async function startController(clock: Clock) {
  const log = createLogger('test', 'silent', { write: () => undefined });
  const schedules = createInformer(
    server.transport,
    { ...controllerScheduleInformer, namespace },
    { clock: systemClock, log },
  );
  const agents = createInformer(
    server.transport,
    { ...controllerAgentInformer, namespace },
    { clock: systemClock, log },
  );
  let statusWrites = 0;
  const api: Pick<KubeApi, 'get' | 'create' | 'patch'> = {
    get: (type, ref, options) => server.api.get(type, ref, options),
    create: (type, object, options) => server.api.create(type, object, options),
    patch: async (type, ref, body, options) => {
      const written = await server.api.patch(type, ref, body, options);
      if (options.subresource === 'status') statusWrites += 1;
      return written;
    },
  };
  const part = createAgentScheduleController({
    api,
    clock,
    log,
    caches: { schedules, agents, runs: { get: () => undefined } },
    keyring: () => KEYRING,
    backlogExceeded: () => undefined,
    reserve: () => ({ settle: () => undefined }),
    metrics: { turnedAway: () => undefined },
  });
  const controller = new Controller({ ...part, clock, log, backoff: { baseMs: 20, maxMs: 200, jitter: 0.2 } });
  part.watch((key) => controller.enqueue(key));
  schedules.start();
  agents.start();
  await Promise.all([schedules.synced, agents.synced]);
  controller.start();
  return {
    part,
    enqueue: (key: string) => controller.enqueue(key),
    statusWrites: () => statusWrites,
    stop: async () => {
      await controller.stop();
      await Promise.all([schedules.stop(), agents.stop()]);
    },
  };
}

const read = (name: string): Promise<AgentSchedule> => server.api.get(AgentSchedules, { namespace, name });

async function runsOf(schedule: AgentSchedule): Promise<string[]> {
  const { items } = await server.api.list(AgentRuns, { namespace });
  return items.filter(({ spec }) => spec.trigger?.uid === schedule.metadata.uid).map(({ metadata }) => metadata.name);
}

async function handled(name: string, tick: number): Promise<void> {
  const wanted = new Date(tick).toISOString();
  await eventually(async () => (await read(name)).status?.lastTick === wanted, `tick ${wanted} was not handled`);
}

/** A daily schedule whose next tick is some hours away. */
async function createSchedule(slug: string, timing: { cron: string } | { runAt: string }): Promise<AgentSchedule> {
  return server.api.create(AgentSchedules, {
    apiVersion: API_VERSION,
    kind: 'AgentSchedule',
    metadata: { name: `news.${slug}`, namespace },
    spec: AgentScheduleSpec.parse({ agent: 'news', name: slug, body: 'Write the news.', ...timing }),
  });
}

test('two controllers and a jump of the clock: one run a tick, also after the run is gone', async () => {
  const hour = new Date(systemClock.now() + 6 * HOUR_MS).getUTCHours();
  const schedule = await createSchedule('daily', { cron: `30 ${hour} * * *` });
  const { name } = schedule.metadata;
  const key = `${namespace}/${name}`;
  const clock = new JumpingClock();
  const [first, second] = [await startController(clock), await startController(clock)];
  await eventually(async () => (await read(name)).status?.nextRunAt !== undefined, 'no next run');
  expect((await read(name)).spec.keyId).toBe('k1');
  expect(await runsOf(schedule)).toEqual([]);
  const tick = nextTick({ cron: schedule.spec.cron, timezone: 'UTC' }, systemClock.now()) ?? 0;
  const nameOf = (ofTick: number) =>
    tickRunName(KEY, { agent: 'news', scheduleUid: schedule.metadata.uid ?? '', tick: ofTick, attempt: 0 });
  const writes = () => first.statusWrites() + second.statusWrites();
  const before = writes();

  clock.ahead = tick - systemClock.now() + 1_000;
  for (const controller of [first, second]) controller.enqueue(key);
  await handled(name, tick);
  expect(await runsOf(schedule)).toEqual([nameOf(tick)]);
  const run = await server.api.get(AgentRuns, { namespace, name: nameOf(tick) });
  expect(run.spec).toMatchObject({
    agentUid,
    message: 'Write the news.',
    trigger: { origin: 'schedule', name: 'daily' },
    sessionTitle: 'schedule: daily',
  });
  expect((await read(name)).status).toMatchObject({
    lastRunId: nameOf(tick),
    nextRunAt: new Date(tick + 24 * HOUR_MS).toISOString(),
  });

  // The run is removed; the tick is remembered, also by a controller that has just started.
  await server.api.patch(
    AgentRuns,
    { namespace, name: nameOf(tick) },
    { metadata: { finalizers: [] } },
    { type: 'merge' },
  );
  await server.api.delete(AgentRuns, { namespace, name: nameOf(tick) });
  const third = await startController(clock);
  const signal = new AbortController().signal;
  for (const controller of [first, second, third]) await controller.part.reconcile(key, signal);
  expect(await runsOf(schedule)).toEqual([]);
  expect(writes() - before).toBe(1);

  clock.ahead += 24 * HOUR_MS;
  for (const controller of [first, second, third]) controller.enqueue(key);
  await handled(name, tick + 24 * HOUR_MS);
  expect(await runsOf(schedule)).toEqual([nameOf(tick + 24 * HOUR_MS)]);
  expect(writes() + third.statusWrites() - before).toBe(2);
  await Promise.all([first, second, third].map((controller) => controller.stop()));
});

test('a date fires once and disables its schedule', async () => {
  const tick = systemClock.now() + 3 * HOUR_MS;
  const runAt = new Date(tick).toISOString().slice(0, 19) + 'Z';
  const schedule = await createSchedule('once', { runAt });
  const { name } = schedule.metadata;
  const clock = new JumpingClock();
  const controllers = [await startController(clock), await startController(clock)];
  await eventually(async () => (await read(name)).status?.nextRunAt !== undefined, 'no next run');
  clock.ahead = 3 * HOUR_MS + 2_000;
  for (const controller of controllers) controller.enqueue(`${namespace}/${name}`);
  await eventually(async () => !(await read(name)).spec.enabled, 'it was not disabled');
  expect(await runsOf(schedule)).toHaveLength(1);
  const { status } = await read(name);
  expect(status?.lastRunAt).toBe(new Date(runAt).toISOString());
  expect(status?.nextRunAt).toBeUndefined();
  await Promise.all(controllers.map((controller) => controller.stop()));
});
