import { FakeClock } from '../../test/builders/fake-clock.js';
import { recordingLog } from '../../test/builders/log.js';
import { LeaderElector } from './leader-elector.js';
import type { LeaderElectorOptions, LeaseRecord, LeaseStore } from './leader-elector.js';

/** A lease in memory that checks versions; it can fail and hang. */
class MemoryLease implements LeaseStore {
  record: LeaseRecord | undefined;
  updates = 0;
  failing = false;
  hanging = false;

  read(signal: AbortSignal): Promise<LeaseRecord | undefined> {
    return this.#answer(signal, () => this.record);
  }

  create(record: Omit<LeaseRecord, 'version'>, signal: AbortSignal): Promise<LeaseRecord> {
    return this.#answer(signal, () => {
      if (this.record !== undefined) throw new Error('409 AlreadyExists');
      return (this.record = { ...record, version: '1' });
    });
  }

  update(record: LeaseRecord, signal: AbortSignal): Promise<LeaseRecord> {
    return this.#answer(signal, () => {
      if (this.record?.version !== record.version) throw new Error('409 Conflict');
      this.updates += 1;
      return (this.record = { ...record, version: String(Number(record.version) + 1) });
    });
  }

  async #answer<R>(signal: AbortSignal, act: () => R): Promise<R> {
    await Promise.resolve();
    signal.throwIfAborted();
    if (this.hanging) {
      await new Promise((_resolve, reject) => signal.addEventListener('abort', () => reject(new Error('aborted'))));
    }
    if (this.failing) throw new Error('500');
    return act();
  }
}

function newElector(
  clock: FakeClock,
  store: LeaseStore,
  identity: string,
  options: Partial<LeaderElectorOptions> = {},
) {
  const events: string[] = [];
  const elector = new LeaderElector({
    name: 'controller',
    identity,
    store,
    clock,
    log: recordingLog().log,
    random: () => 0,
    onStartedLeading: () => {
      events.push('started');
    },
    onStoppedLeading: (why) => {
      events.push(why);
    },
    ...options,
  });
  return { elector, events };
}

test('the first one leads at once and renews every 2 seconds', async () => {
  const clock = new FakeClock();
  const store = new MemoryLease();
  const { elector, events } = newElector(clock, store, 'a');

  elector.start();
  await clock.advance(60_000);

  expect(events).toEqual(['started']);
  expect(elector.isLeading()).toBe(true);
  expect(store.updates).toBe(30);
  expect(store.record).toMatchObject({ holder: 'a', durationSeconds: 15, transitions: 0 });
});

test('the second one waits while the first renews, and leads when the lease was released', async () => {
  const clock = new FakeClock();
  const store = new MemoryLease();
  const a = newElector(clock, store, 'a');
  const b = newElector(clock, store, 'b');
  a.elector.start();
  await clock.advance(0);
  b.elector.start();
  await clock.advance(120_000);
  const whileFirstLeads = [a.elector.isLeading(), b.elector.isLeading()];

  await a.elector.stop();
  await clock.advance(2_000);

  expect(whileFirstLeads).toEqual([true, false]);
  expect(a.events).toEqual(['started', 'stopped']);
  expect([a.elector.isLeading(), b.elector.isLeading()]).toEqual([false, true]);
  expect(store.record).toMatchObject({ holder: 'b', transitions: 1 });
});

test('after a silent death the lease is taken when its duration has passed since it was last seen to change', async () => {
  const clock = new FakeClock();
  const store = new MemoryLease();
  // The dead one's clock was an hour ahead: its times must not matter.
  store.record = {
    holder: 'dead',
    durationSeconds: 15,
    acquireTime: '2026-01-01T01:00:00.000Z',
    renewTime: '2026-01-01T01:00:00.000Z',
    transitions: 4,
    version: '9',
  };
  const { elector } = newElector(clock, store, 'b');
  elector.start();

  await clock.advance(14_999);
  const early = elector.isLeading();
  await clock.advance(2_001);

  expect(early).toBe(false);
  expect(elector.isLeading()).toBe(true);
  expect(store.record).toMatchObject({ holder: 'b', transitions: 5 });
});

test.each(['failing', 'hanging'] as const)(
  'a leader whose store is %s stops leading at the renew deadline, before another can begin',
  async (fault) => {
    const clock = new FakeClock();
    const store = new MemoryLease();
    const a = newElector(clock, store, 'a');
    a.elector.start();
    await clock.advance(4_000);

    store[fault] = true;
    await clock.advance(9_999);
    const before = a.elector.isLeading();
    await clock.advance(1);
    const at = a.elector.isLeading();
    await clock.advance(2_000);

    expect([before, at]).toEqual([true, false]);
    expect(a.events).toEqual(['started', 'lost']);
  },
);

test('a process that was frozen does not lead when it wakes, before any timer ran', async () => {
  const clock = new FakeClock();
  const store = new MemoryLease();
  const a = newElector(clock, store, 'a');
  a.elector.start();
  await clock.advance(0);

  jumpWithoutTimers(clock, 10_000);

  expect(a.elector.isLeading()).toBe(false);
  await clock.advance(2_000);
  expect(a.events).toEqual(['started', 'lost']);
  expect(store.updates).toBe(0);
});

test('a lease that somebody else took is lost at the next look', async () => {
  const clock = new FakeClock();
  const store = new MemoryLease();
  const a = newElector(clock, store, 'a');
  a.elector.start();
  await clock.advance(0);

  store.record = { ...(store.record as LeaseRecord), holder: 'b', version: '77' };
  await clock.advance(2_000);

  expect(a.events).toEqual(['started', 'lost']);
  expect(a.elector.isLeading()).toBe(false);
  expect(store.record.holder).toBe('b');
});

test('the lease is kept while the workers stop, and released after them', async () => {
  const clock = new FakeClock();
  const store = new MemoryLease();
  let workersStopped: () => void = () => undefined;
  const a = newElector(clock, store, 'a', {
    onStoppedLeading: () => new Promise<void>((resolve) => (workersStopped = resolve)),
  });
  a.elector.start();
  await clock.advance(0);

  const stopping = a.elector.stop();
  await clock.advance(20_000);
  const whileStopping = { ...store.record };
  workersStopped();
  await clock.advance(0);
  await stopping;

  expect(whileStopping).toMatchObject({ holder: 'a' });
  expect(store.updates).toBe(11); // ten renewals and the release
  expect(store.record).toMatchObject({ holder: '', durationSeconds: 1 });
  expect(clock.pending).toBe(0);
});

test('when the work cannot start, the lease counts as lost and is not renewed', async () => {
  const clock = new FakeClock();
  const store = new MemoryLease();
  const { log, messages } = recordingLog();
  const a = newElector(clock, store, 'a', {
    log,
    onStartedLeading: () => Promise.reject(new Error('port in use')),
  });
  a.elector.start();
  await clock.advance(20_000);

  expect(a.events).toEqual(['lost']);
  expect(a.elector.isLeading()).toBe(false);
  expect(store.updates).toBe(0);
  expect(messages()).toContain('error leader work could not start');
});

test('one that is stopped while it waits takes no lease', async () => {
  const clock = new FakeClock();
  const store = new MemoryLease();
  store.record = { holder: 'x', durationSeconds: 15, acquireTime: '', renewTime: '', transitions: 0, version: '1' };
  const a = newElector(clock, store, 'a');
  a.elector.start();
  await clock.advance(5_000);

  await a.elector.stop();
  await clock.advance(60_000);

  expect(a.events).toEqual([]);
  expect(store.record.holder).toBe('x');
});

test('times that cannot work are refused', () => {
  expect(() => newElector(new FakeClock(), new MemoryLease(), 'a', { renewDeadlineMs: 15_000 })).toThrow(
    'leaseDuration > renewDeadline > 1.2 x retryPeriod',
  );
});

/** Time passes, but nothing runs: what a stopped process sees. */
function jumpWithoutTimers(clock: FakeClock, ms: number): void {
  const before = clock.monotonic.bind(clock);
  clock.monotonic = () => before() + ms;
}
