import { createSecretKey } from 'node:crypto';
import { API_VERSION } from '../../api/define-resource.js';
import type { Keyring } from '../../api/keyring.js';
import { AgentRuns } from '../../api/v1alpha1/agent-run.js';
import { AgentSchedules } from '../../api/v1alpha1/agent-schedule.js';
import type { AgentSchedule } from '../../api/v1alpha1/agent-schedule.js';
import { AgentSpec, Agents } from '../../api/v1alpha1/agent.js';
import { findCondition } from '../../api/conditions.js';
import { tickRunName } from '../../schedule/run-name.js';
import { FakeClock } from '../../../test/builders/fake-clock.js';
import { apiError, RecordingApi } from '../../../test/builders/recording-api.js';
import type { BacklogScope } from '../../run/start/backlog-budget.js';
import { createLogger } from '../../observability/logger.js';
import { createAgentScheduleController } from './controller.js';
import { controllerScheduleInformer } from '../../projections/agent-schedule.js';
import { controllerAgentInformer } from '../../projections/agent.js';
import { controllerRunInformer } from '../../projections/agent-run.js';

const NAMESPACE = 'bw-lab';
const NAME = 'news.morning';
const KEY = `${NAMESPACE}/${NAME}`;
const HMAC_KEY = createSecretKey(Buffer.alloc(32, 7));
const KEYRING: Keyring = { current: 'k1', keys: new Map([['k1', HMAC_KEY]]) };
const CREATED = '2026-05-01T12:00:00Z';
const TICK = Date.parse('2026-05-02T09:00:00Z');
const DAY_MS = 86_400_000;
const MINUTE_MS = 60_000;

interface Options {
  spec?: Partial<AgentSchedule['spec']>;
  status?: AgentSchedule['status'];
  annotations?: Record<string, string>;
  keyring?: Keyring | undefined;
  active?: boolean;
  withoutAgent?: boolean;
}

/** One schedule (daily at 09:00 UTC unless said otherwise), its agent, and a controller on a store of its own. */
function setUp(options: Options = {}) {
  const clock = new FakeClock(Date.parse(CREATED));
  const api = new RecordingApi({ clock });
  if (options.withoutAgent !== true) {
    const status = options.active === false ? { active: false, inactiveReason: 'no free slot' } : { active: true };
    api.seed(Agents, {
      apiVersion: API_VERSION,
      kind: 'Agent',
      metadata: { name: 'news', namespace: NAMESPACE, uid: 'uid-agent' },
      spec: AgentSpec.parse({ name: 'News' }),
      status,
    });
  }
  api.seed(AgentSchedules, {
    apiVersion: API_VERSION,
    kind: 'AgentSchedule',
    metadata: {
      name: NAME,
      namespace: NAMESPACE,
      uid: 'uid-schedule',
      creationTimestamp: CREATED,
      ...(options.annotations === undefined ? {} : { annotations: options.annotations }),
    },
    spec: {
      agent: 'news',
      name: 'Morning',
      description: '',
      body: 'Write the news.',
      timezone: 'UTC',
      enabled: true,
      keyId: 'k1',
      ...(options.spec?.runAt === undefined ? { cron: '0 9 * * *' } : {}),
      ...options.spec,
    },
    ...(options.status === undefined ? {} : { status: options.status }),
  });
  const backlog: { full: BacklogScope | undefined; turnedAway: BacklogScope[]; places: string[] } = {
    full: undefined,
    turnedAway: [],
    places: [],
  };
  const controller = () =>
    createAgentScheduleController({
      api,
      clock,
      log: createLogger('test', 'error'),
      caches: {
        schedules: api.informer(controllerScheduleInformer),
        agents: api.informer(controllerAgentInformer),
        runs: api.informer(controllerRunInformer),
      },
      keyring: () => ('keyring' in options ? options.keyring : KEYRING),
      backlogExceeded: (agent) => {
        expect(agent).toEqual({ box: 'lab', agent: 'news' });
        return backlog.full;
      },
      reserve: (run) => {
        backlog.places.push(`${run.box}.${run.agent} ${run.name} ${run.inputBytes}`);
        return { settle: (end) => backlog.places.push(end) };
      },
      metrics: { turnedAway: (scope) => backlog.turnedAway.push(scope) },
    });
  const part = controller();
  const reconcile = () => part.reconcile(KEY, new AbortController().signal);
  return {
    api,
    clock,
    backlog,
    controller,
    reconcile,
    schedule: () => api.peek(AgentSchedules, KEY) as AgentSchedule,
    runs: () => api.all(AgentRuns),
    statusWrites: () => api.writes.filter(({ resource }) => resource === 'agentschedules/status').length,
    fired: () => findCondition(api.peek(AgentSchedules, KEY)?.status?.conditions, 'Fired'),
    ready: () => findCondition(api.peek(AgentSchedules, KEY)?.status?.conditions, 'Ready'),
    /** Reconciles, moves the clock there and reconciles again. */
    at: async (timeMs: number) => {
      await clock.advance(timeMs - clock.now());
      return reconcile();
    },
  };
}

const runName = (attempt = 0, tick = TICK) =>
  tickRunName(HMAC_KEY, { agent: 'news', scheduleUid: 'uid-schedule', tick, attempt });

/** Somebody else's run under the name of the tick. */
function seedForeignRun(api: RecordingApi): void {
  api.seed(AgentRuns, {
    apiVersion: API_VERSION,
    kind: 'AgentRun',
    metadata: { name: runName(), namespace: NAMESPACE },
    spec: { agent: 'news', message: 'mine' },
  });
}

describe('a schedule', () => {
  test('waits for its tick, showing when it comes, and sleeps at most five minutes', async () => {
    const { reconcile, schedule, runs, api, clock } = setUp();
    expect(await reconcile()).toEqual({ requeueAfterMs: 5 * MINUTE_MS });
    expect(schedule().status).toMatchObject({ nextRunAt: '2026-05-02T09:00:00.000Z' });
    expect(schedule().status?.lastTick).toBeUndefined();
    await clock.advance(TICK - clock.now() - 1500);
    api.clearRecords();
    expect(await reconcile()).toEqual({ requeueAfterMs: 1500 });
    expect(api.writes).toEqual([]);
    expect(api.reads).toEqual([]);
    expect(runs()).toEqual([]);
  });

  test('fires with one read, one create and one status write', async () => {
    const { at, reconcile, schedule, runs, api, fired, ready } = setUp();
    await reconcile();
    api.clearRecords();
    expect(await at(TICK)).toEqual({ requeueAfterMs: 5 * MINUTE_MS });
    expect(api.reads.map(({ verb, resource }) => `${verb} ${resource}`)).toEqual(['get agentschedules']);
    expect(api.writes.map(({ verb, resource }) => `${verb} ${resource}`)).toEqual([
      'create agentruns',
      'patch agentschedules/status',
    ]);
    expect(runs()[0]).toMatchObject({
      metadata: { name: runName(), namespace: NAMESPACE, labels: { 'boxwright.dev/agent': 'news' } },
      spec: {
        agent: 'news',
        agentUid: 'uid-agent',
        message: 'Write the news.',
        trigger: { origin: 'schedule', name: 'morning', uid: 'uid-schedule' },
        sessionTitle: 'schedule: morning',
        actor: 'schedule',
      },
    });
    expect(runs()[0]?.spec.sessionId).toBeUndefined();
    expect(schedule().status).toMatchObject({
      lastTick: '2026-05-02T09:00:00.000Z',
      lastRunAt: '2026-05-02T09:00:00.000Z',
      lastRunId: runName(),
      nextRunAt: '2026-05-03T09:00:00.000Z',
    });
    expect(fired()).toMatchObject({ status: 'True', reason: 'Fired' });
    expect(ready()?.status).toBe('True');
  });

  test('fires every tick of four days once, in a zone', async () => {
    const { at, runs } = setUp({ spec: { timezone: 'Europe/Berlin' } });
    for (let hour = 0; hour <= 4 * 24; hour++) await at(Date.parse(CREATED) + hour * 60 * MINUTE_MS);
    expect(runs().map(({ spec }) => spec.createdAt)).toEqual([
      '2026-05-02T07:00:00.000Z',
      '2026-05-03T07:00:00.000Z',
      '2026-05-04T07:00:00.000Z',
      '2026-05-05T07:00:00.000Z',
    ]);
  });

  test('of two controllers at once one run comes out, and one status', async () => {
    const { controller, at, reconcile, runs, schedule, clock } = setUp();
    await reconcile();
    await clock.advance(TICK - clock.now());
    const other = controller();
    const results = await Promise.allSettled([reconcile(), other.reconcile(KEY, new AbortController().signal)]);
    expect(results.filter(({ status }) => status === 'rejected').length).toBeLessThanOrEqual(1);
    await at(TICK + 1000);
    await other.reconcile(KEY, new AbortController().signal);
    expect(runs()).toHaveLength(1);
    expect(schedule().status?.lastRunId).toBe(runName());
  });

  test('is not fired again by a controller that died after the create', async () => {
    const { api, at, reconcile, runs, schedule } = setUp();
    await reconcile();
    api.failNext({ verb: 'patch', resource: 'agentschedules/status', error: new Error('died') });
    await expect(at(TICK)).rejects.toThrow('died');
    expect(schedule().status?.lastTick).toBeUndefined();
    await at(TICK + 5 * MINUTE_MS);
    expect(runs()).toHaveLength(1);
    expect(schedule().status).toMatchObject({ lastRunId: runName(), lastRunAt: '2026-05-02T09:00:00.000Z' });
  });

  test('is not fired again after its run is gone', async () => {
    const { api, at, reconcile, runs } = setUp();
    await reconcile();
    await at(TICK);
    api.vanish(AgentRuns, `${NAMESPACE}/${runName()}`);
    await at(TICK + MINUTE_MS);
    expect(runs()).toEqual([]);
  });

  test('is not fired by a controller whose cache is old', async () => {
    const { api, clock, runs, reconcile } = setUp();
    await reconcile();
    const schedules = api.informer(controllerScheduleInformer);
    const old = schedules.get(KEY) as AgentSchedule;
    const agents = api.informer(controllerAgentInformer);
    await clock.advance(TICK - clock.now());
    await reconcile();
    api.vanish(AgentRuns, `${NAMESPACE}/${runName()}`);
    const late = createAgentScheduleController({
      api,
      clock,
      log: createLogger('test', 'error'),
      caches: {
        schedules: Object.assign(Object.create(schedules) as typeof schedules, { get: () => old }),
        agents,
        runs: api.informer(controllerRunInformer),
      },
      keyring: () => KEYRING,
      backlogExceeded: () => undefined,
      reserve: () => ({ settle: () => undefined }),
      metrics: { turnedAway: () => undefined },
    });
    api.clearRecords();
    expect(await late.reconcile(KEY, new AbortController().signal)).toEqual({ requeueAfterMs: 1000 });
    expect(api.writes).toEqual([]);
    expect(runs()).toEqual([]);
  });

  test('takes the next attempt when somebody else’s run has the name', async () => {
    const { api, at, reconcile, runs } = setUp();
    await reconcile();
    seedForeignRun(api);
    await at(TICK);
    expect(runs().map(({ metadata }) => metadata.name)).toEqual([runName(), runName(1)]);
  });

  test('is caught up once within ten minutes', async () => {
    const { at, runs, schedule } = setUp({
      spec: { cron: '* * * * *' },
      status: { lastTick: '2026-05-02T08:00:00.000Z', armedFor: '* * * * * UTC', armedAt: CREATED, conditions: [] },
    });
    await at(TICK + 30_000);
    expect(runs().map(({ metadata }) => metadata.name)).toEqual([runName()]);
    expect(schedule().status?.lastTick).toBe('2026-05-02T09:00:00.000Z');
  });

  test('is skipped after the deadline, with a condition, and goes on with the next tick', async () => {
    const { at, runs, fired, schedule, reconcile, statusWrites } = setUp();
    await reconcile();
    await at(TICK + 10 * MINUTE_MS + 1);
    expect(runs()).toEqual([]);
    expect(fired()).toMatchObject({
      status: 'False',
      reason: 'Missed',
      message: '2026-05-02T09:00:00.000Z was missed: a tick is caught up for 10 minutes only',
    });
    expect(statusWrites()).toBe(2);
    await at(TICK + 11 * MINUTE_MS);
    expect(statusWrites()).toBe(2);
    expect(schedule().status?.nextRunAt).toBe('2026-05-03T09:00:00.000Z');
    await at(TICK + DAY_MS);
    expect(runs()).toHaveLength(1);
    expect(fired()).toMatchObject({ status: 'True' });
  });

  test('skips the ticks of an inactive agent and says so', async () => {
    const { at, runs, fired, reconcile, schedule } = setUp({ active: false });
    await reconcile();
    await at(TICK);
    expect(runs()).toEqual([]);
    expect(fired()).toMatchObject({
      status: 'False',
      reason: 'AgentInactive',
      message: '2026-05-02T09:00:00.000Z was skipped: the agent is inactive: no free slot',
    });
    expect(schedule().status).toMatchObject({
      lastTick: '2026-05-02T09:00:00.000Z',
      nextRunAt: '2026-05-03T09:00:00.000Z',
    });
    expect(schedule().status?.lastRunAt).toBeUndefined();
  });

  test('without its agent is not ready and does not fire', async () => {
    const { at, runs, ready, fired } = setUp({ withoutAgent: true });
    await at(TICK);
    expect(runs()).toEqual([]);
    expect(ready()).toMatchObject({ status: 'False', reason: 'AgentNotFound' });
    expect(fired()).toMatchObject({ reason: 'AgentNotFound' });
  });

  test('tries a refused tick again until the deadline', async () => {
    const { api, at, reconcile, runs, fired, statusWrites } = setUp();
    await reconcile();
    api.failNext({ verb: 'create', resource: 'agentruns', error: apiError(403, 'Forbidden', 'quota'), times: 2 });
    expect(await at(TICK)).toEqual({ requeueAfterMs: 30_000 });
    expect(fired()).toMatchObject({ status: 'False', reason: 'Refused' });
    await at(TICK + 30_000);
    expect(statusWrites()).toBe(2);
    await at(TICK + MINUTE_MS);
    expect(runs().map(({ metadata }) => metadata.name)).toEqual([runName()]);
    expect(fired()).toMatchObject({ status: 'True' });
  });

  test('that is refused to the end is skipped saying why', async () => {
    const { api, at, reconcile, runs, fired, schedule } = setUp();
    await reconcile();
    api.failNext({ verb: 'create', resource: 'agentruns', error: apiError(403, 'Forbidden', 'quota'), times: 9 });
    await at(TICK + 10 * MINUTE_MS - 1000);
    expect(runs()).toEqual([]);
    expect(fired()).toMatchObject({ status: 'False', reason: 'Refused' });
    expect(fired()?.message).toMatch(/^2026-05-02T09:00:00.000Z was skipped: /);
    expect(schedule().status?.lastTick).toBe('2026-05-02T09:00:00.000Z');
  });

  test('skips a tick whose message is larger than a run takes', async () => {
    const { at, reconcile, runs, fired, schedule } = setUp({ spec: { body: '語'.repeat(50_000) } });
    await reconcile();
    await at(TICK);
    expect(runs()).toEqual([]);
    expect(fired()).toMatchObject({ reason: 'MessageTooLarge' });
    expect(schedule().status?.lastTick).toBe('2026-05-02T09:00:00.000Z');
  });
});

describe('a full backlog', () => {
  test('waits while the backlog is full, is skipped at the deadline saying so, and goes on with the next tick', async () => {
    const { api, at, backlog, reconcile, runs, fired, ready, schedule, statusWrites } = setUp();
    await reconcile();
    backlog.full = 'box';
    api.clearRecords();
    expect(await at(TICK)).toEqual({ requeueAfterMs: 30_000 });
    expect(api.reads).toEqual([]);
    expect(fired()).toMatchObject({
      status: 'False',
      reason: 'BacklogFull',
      message:
        '2026-05-02T09:00:00.000Z has to wait: too many runs are waiting (limit of the box); cancel runs that nobody needs, or let less come in',
    });
    expect(ready()?.status).toBe('True');
    for (let later = 30_000; later < 10 * MINUTE_MS; later += 30_000) {
      expect(await at(TICK + later)).toEqual({ requeueAfterMs: 30_000 });
    }
    expect(statusWrites()).toBe(1);
    expect(schedule().status?.lastTick).toBeUndefined();
    expect(await at(TICK + 10 * MINUTE_MS)).toEqual({ requeueAfterMs: 5 * MINUTE_MS });
    expect(fired()).toMatchObject({
      status: 'False',
      reason: 'BacklogFull',
      message:
        '2026-05-02T09:00:00.000Z was skipped: too many runs are waiting (limit of the box); cancel runs that nobody needs, or let less come in',
    });
    expect(statusWrites()).toBe(2);
    expect(backlog.turnedAway).toEqual(Array(21).fill('box'));
    backlog.full = undefined;
    await at(TICK + 11 * MINUTE_MS);
    expect(runs()).toEqual([]);
    await at(TICK + DAY_MS);
    expect(runs().map(({ metadata }) => metadata.name)).toEqual([runName(0, TICK + DAY_MS)]);
    expect(fired()).toMatchObject({ status: 'True', reason: 'Fired' });
  });

  test('that gets room again within the deadline has its tick once', async () => {
    const { at, backlog, reconcile, runs, schedule } = setUp();
    await reconcile();
    backlog.full = 'installation';
    await at(TICK);
    backlog.full = undefined;
    await at(TICK + 30_000);
    await at(TICK + MINUTE_MS);
    expect(runs().map(({ metadata }) => metadata.name)).toEqual([runName()]);
    expect(schedule().status).toMatchObject({ lastRunId: runName(), lastRunAt: '2026-05-02T09:00:00.000Z' });
    expect(backlog.turnedAway).toEqual(['installation']);
  });

  test('does not hide the run of a controller that died after the create', async () => {
    const { api, at, backlog, reconcile, runs, fired, schedule } = setUp();
    await reconcile();
    api.failNext({ verb: 'patch', resource: 'agentschedules/status', error: new Error('died') });
    await expect(at(TICK)).rejects.toThrow('died');
    backlog.full = 'agent';
    await at(TICK + 30_000);
    expect(runs()).toHaveLength(1);
    expect(schedule().status?.lastRunId).toBe(runName());
    expect(fired()).toMatchObject({ status: 'True' });
    expect(backlog.turnedAway).toEqual([]);
  });

  test('a run of somebody else with the name of the tick does not let it through', async () => {
    const { api, at, backlog, reconcile, runs } = setUp();
    await reconcile();
    seedForeignRun(api);
    backlog.full = 'agent';
    await at(TICK);
    expect(runs()).toHaveLength(1);
    expect(backlog.turnedAway).toEqual(['agent']);
  });

  test('a tick has a place in the budget from before its create', async () => {
    const { api, at, backlog, reconcile } = setUp();
    await reconcile();
    const create = api.create.bind(api);
    api.create = (...given) => {
      backlog.places.push('create');
      return create(...given);
    };
    await at(TICK);
    expect(backlog.places).toEqual([`lab.news ${runName()} 15`, 'create', 'stored']);
  });

  test('a tick whose room another one takes while it reads waits', async () => {
    const { api, at, backlog, reconcile, runs, fired } = setUp();
    await reconcile();
    const get = api.get.bind(api);
    api.get = (...given) => {
      backlog.full = 'box';
      return get(...given);
    };
    await at(TICK);
    expect([runs(), backlog.turnedAway]).toEqual([[], ['box']]);
    expect(fired()).toMatchObject({ status: 'False', reason: 'BacklogFull' });
  });

  test('a date that finds no room is over after the deadline', async () => {
    const { at, backlog, reconcile, runs, schedule } = setUp({
      spec: { runAt: '2026-05-02T09:00:00Z', timezone: 'UTC' },
    });
    await reconcile();
    backlog.full = 'agent';
    await at(TICK);
    await at(TICK + 10 * MINUTE_MS);
    backlog.full = undefined;
    await reconcile();
    await at(TICK + DAY_MS);
    expect(runs()).toEqual([]);
    expect(schedule().spec.enabled).toBe(false);
  });
});

describe('arming', () => {
  test('a disabled schedule does not tick and has no next run', async () => {
    const { at, runs, schedule } = setUp({ spec: { enabled: false } });
    expect(await at(TICK)).toEqual({});
    expect(runs()).toEqual([]);
    expect(schedule().status?.nextRunAt).toBeUndefined();
  });

  test('a tick during the time it was disabled is not caught up', async () => {
    const { api, at, reconcile, runs, schedule } = setUp();
    await reconcile();
    await api.patch(
      AgentSchedules,
      { namespace: NAMESPACE, name: NAME },
      { spec: { enabled: false } },
      { type: 'merge' },
    );
    await at(TICK - MINUTE_MS);
    expect(schedule().status?.armedFor).toBeUndefined();
    await api.patch(
      AgentSchedules,
      { namespace: NAMESPACE, name: NAME },
      { spec: { enabled: true } },
      { type: 'merge' },
    );
    await at(TICK + MINUTE_MS);
    expect(runs()).toEqual([]);
    expect(schedule().status?.nextRunAt).toBe('2026-05-03T09:00:00.000Z');
  });

  test('a new time counts from the change on', async () => {
    const { api, at, reconcile, runs, schedule } = setUp();
    await reconcile();
    await at(TICK);
    await api.patch(
      AgentSchedules,
      { namespace: NAMESPACE, name: NAME },
      { spec: { cron: '5 9 * * *' } },
      { type: 'merge' },
    );
    await at(TICK + 6 * MINUTE_MS);
    expect(runs()).toHaveLength(1);
    expect(schedule().status?.nextRunAt).toBe('2026-05-03T09:05:00.000Z');
  });

  test('another description changes nothing about a tick that is due', async () => {
    const { api, at, reconcile, runs } = setUp();
    await reconcile();
    await api.patch(
      AgentSchedules,
      { namespace: NAMESPACE, name: NAME },
      { spec: { description: 'x' } },
      { type: 'merge' },
    );
    await at(TICK + MINUTE_MS);
    expect(runs()).toHaveLength(1);
  });

  test('a missing key is pinned before anything else', async () => {
    const { api, reconcile, schedule } = setUp({ spec: { keyId: undefined } });
    await reconcile();
    expect(schedule().spec.keyId).toBe('k1');
    expect(api.writes.map(({ resource }) => resource)).toEqual(['agentschedules', 'agentschedules/status']);
  });

  test('nothing happens before the keyring was read', async () => {
    const { api, at } = setUp({ keyring: undefined });
    expect(await at(TICK)).toEqual({ requeueAfterMs: 1000 });
    expect(api.writes).toEqual([]);
  });

  test('a key that is not in the keyring is named', async () => {
    const { at, ready, runs } = setUp({ spec: { keyId: 'k0' } });
    await at(TICK);
    expect(runs()).toEqual([]);
    expect(ready()).toMatchObject({ reason: 'KeyNotFound' });
  });

  test.each([
    ['cron', { cron: '0 9 * * * *' }, 'spec.cron must have exactly five fields'],
    ['zone', { timezone: 'Mars/Olympus' }, 'spec.timezone must be an IANA time zone'],
  ])('a %s that cannot be followed is named', async (_what, spec, message) => {
    const { at, ready, runs, schedule } = setUp({ spec });
    await at(TICK);
    expect(runs()).toEqual([]);
    expect(schedule().status?.nextRunAt).toBeUndefined();
    expect(ready()).toMatchObject({ status: 'False', reason: 'InvalidSchedule' });
    expect(ready()?.message).toContain(message);
  });
});

describe('a date', () => {
  const oneOff = { runAt: '2026-05-02T11:00', timezone: 'Europe/Berlin' };

  test('fires once and disables the schedule', async () => {
    const { at, reconcile, runs, schedule } = setUp({ spec: oneOff });
    await reconcile();
    expect(schedule().status?.nextRunAt).toBe('2026-05-02T09:00:00.000Z');
    await at(TICK);
    await reconcile();
    await at(TICK + DAY_MS);
    expect(runs()).toHaveLength(1);
    expect(schedule().spec.enabled).toBe(false);
    expect(schedule().status).toMatchObject({ lastRunAt: '2026-05-02T09:00:00.000Z', lastRunId: runName() });
    expect(schedule().status?.nextRunAt).toBeUndefined();
  });

  test('that was enabled again does not fire again', async () => {
    const { api, at, reconcile, runs } = setUp({ spec: oneOff });
    await reconcile();
    await at(TICK);
    await reconcile();
    await api.patch(
      AgentSchedules,
      { namespace: NAMESPACE, name: NAME },
      { spec: { enabled: true } },
      { type: 'merge' },
    );
    await at(TICK + MINUTE_MS);
    expect(runs()).toHaveLength(1);
  });

  test('that was missed is over, and says so', async () => {
    const { at, reconcile, runs, schedule, fired } = setUp({ spec: oneOff });
    await reconcile();
    await at(TICK + 60 * MINUTE_MS);
    await reconcile();
    expect(runs()).toEqual([]);
    expect(fired()).toMatchObject({ status: 'False', reason: 'Missed' });
    expect(schedule().spec.enabled).toBe(false);
  });

  test('that was over when the schedule was made never fires', async () => {
    const { reconcile, runs, fired } = setUp({ spec: { runAt: '2026-04-30T09:00:00Z' } });
    await reconcile();
    expect(runs()).toEqual([]);
    expect(fired()).toMatchObject({ reason: 'Missed' });
  });

  test('under GitOps the spec stays as its source has it', async () => {
    const { api, at, reconcile, runs, schedule } = setUp({
      spec: oneOff,
      annotations: { 'boxwright.dev/managed-by': 'gitops' },
    });
    await reconcile();
    await at(TICK);
    api.clearRecords();
    await at(TICK + DAY_MS);
    expect(api.writes).toEqual([]);
    expect(runs()).toHaveLength(1);
    expect(schedule().spec.enabled).toBe(true);
  });
});
