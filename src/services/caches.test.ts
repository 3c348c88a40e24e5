import { FakeClock } from '../../test/builders/fake-clock.js';
import { McpHarness } from '../../test/builders/mcp-harness.js';
import { AgentRuns } from '../api/v1alpha1/agent-run.js';
import { AgentTriggers } from '../api/v1alpha1/agent-trigger.js';
import { countLiveRuns } from '../run/start/backlog.js';
import { createTriggerReader } from './caches.js';
import { KeyedWaiter } from '../kube/keyed-waiter.js';

const signal = new AbortController().signal;

describe('TriggerReader', () => {
  function setup() {
    const harness = new McpHarness();
    harness.seedTrigger('acme-box', 'greeter', 'hook');
    harness.api.clearRecords();
    const asked: (string | undefined)[] = [];
    const ensureKey = (keyId: string | undefined) => {
      asked.push(keyId);
      return Promise.resolve();
    };
    const reader = createTriggerReader({ caches: harness.caches, api: harness.api, ensureKey });
    const find = (agent = 'greeter', box = 'acme-box') => reader.find({ box, agent }, 'hook', signal);
    return { harness, find, asked };
  }

  test('finds trigger and agent without a request', async () => {
    const { harness, find, asked } = setup();
    expect(await find()).toMatchObject({
      agent: { box: 'acme-box', agent: 'greeter' },
      slug: 'hook',
      enabled: true,
      methods: ['POST'],
      body: 'do it',
      keyId: 'k1',
    });
    expect(asked).toEqual(['k1']);
    expect(harness.requests()).toEqual([]);
  });

  test('knows nothing of an unknown agent, Box or trigger, without a request', async () => {
    const { harness, find } = setup();
    expect(await find('nobody')).toBeUndefined();
    expect(await find('greeter', 'nowhere')).toBeUndefined();
    expect(harness.requests()).toEqual([]);
  });

  test('an agent or trigger that is being deleted is gone', async () => {
    const metadata = { deletionTimestamp: '2026-05-01T10:00:00Z' };
    const one = setup();
    one.harness.seedAgent('acme-box', 'greeter', { metadata });
    expect(await one.find()).toBeUndefined();
    const two = setup();
    two.harness.seedTrigger('acme-box', 'greeter', 'hook', { metadata });
    expect(await two.find()).toBeUndefined();
  });

  test('while a watch is behind, both are read live', async () => {
    const { harness, find } = setup();
    Object.assign(harness.caches.AgentTrigger, { isHealthy: () => false });
    expect(await find()).toMatchObject({ slug: 'hook' });
    expect(harness.requests()).toEqual(['get agents', 'get agenttriggers']);
    harness.api.vanish(AgentTriggers, 'bw-acme-box/greeter.hook');
    expect(await find()).toBeUndefined();
  });
});

test('live runs are counted by agent, Box and installation; an ended or removed one no more', () => {
  const harness = new McpHarness();
  harness.seedRun('acme-box', 'greeter-1', { spec: { message: 'é' } });
  const counts = countLiveRuns(harness.caches.AgentRun);
  harness.seedRun('acme-box', 'greeter-2', { spec: { message: 'abc' } });
  harness.seedRun('rival-box', 'spy-1', { spec: { agent: 'spy', message: 'x' } });
  expect(counts.agent('acme-box', 'greeter')).toEqual({ runs: 2, bytes: 5 });
  expect(counts.box('rival-box')).toEqual({ runs: 1, bytes: 1 });
  expect(counts.installation()).toEqual({ runs: 3, bytes: 6 });
  harness.seedRun('acme-box', 'greeter-1', { spec: { message: 'é' }, status: { phase: 'done' } });
  harness.api.vanish(AgentRuns, 'bw-rival-box/spy-1');
  expect(counts.installation()).toEqual({ runs: 1, bytes: 3 });
  expect(counts.box('rival-box')).toEqual({ runs: 0, bytes: 0 });
});

test('finished runs have a maximum as well, a fifth above that of retention', () => {
  const harness = new McpHarness();
  const counts = countLiveRuns(harness.caches.AgentRun, 5);
  for (let i = 0; i < 5; i++) harness.seedRun('acme-box', `greeter-${i}`, { status: { phase: 'done' } });
  harness.seedRun('acme-box', 'greeter-5');
  expect(counts.isFinishedFull()).toBe(false);
  harness.seedRun('acme-box', 'greeter-5', { status: { phase: 'error' } });
  expect(counts.isFinishedFull()).toBe(true);
  harness.api.vanish(AgentRuns, 'bw-acme-box/greeter-0');
  expect(counts.isFinishedFull()).toBe(false);
});

describe('KeyedWaiter', () => {
  const setup = () => {
    const harness = new McpHarness();
    const clock = new FakeClock();
    const waiter = new KeyedWaiter(harness.caches.AgentRun, clock);
    const wait = (gone?: AbortSignal) =>
      waiter.wait({
        key: 'bw-acme-box/greeter-1',
        until: (run) => run.terminal,
        ms: 1000,
        ...(gone === undefined ? {} : { signal: gone }),
      });
    return { harness, clock, waiter, wait };
  };

  test('resolves by the event, also for an object that is not there yet', async () => {
    const { harness, clock, waiter, wait } = setup();
    const waits = [wait(), wait()];
    harness.seedRun('acme-box', 'greeter-1');
    expect(waiter.size).toBe(2);
    harness.seedRun('acme-box', 'greeter-1', { status: { phase: 'error' } });
    expect((await Promise.all(waits)).map((run) => run?.phase)).toEqual(['error', 'error']);
    expect([waiter.size, clock.pending]).toEqual([0, 0]);
    expect((await wait())?.phase).toBe('error');
  });

  test.each(['removal', 'time', 'client', 'stop'])(
    'ends with undefined by %s and leaves nothing behind',
    async (why) => {
      const { harness, clock, waiter, wait } = setup();
      const gone = new AbortController();
      harness.seedRun('acme-box', 'greeter-1');
      const waiting = wait(gone.signal);
      if (why === 'removal') harness.api.vanish(AgentRuns, 'bw-acme-box/greeter-1');
      if (why === 'time') await clock.advance(1000);
      if (why === 'client') gone.abort();
      if (why === 'stop') waiter.stop();
      expect(await waiting).toBeUndefined();
      expect([waiter.size, clock.pending]).toEqual([0, 0]);
    },
  );
});
