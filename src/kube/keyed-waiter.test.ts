import { FakeClock } from '../../test/builders/fake-clock.js';
import { ObjectCache } from './cache.js';
import { KeyedWaiter } from './keyed-waiter.js';

const KEY = 'ns/a';

function setup() {
  const cache = new ObjectCache<{ phase: string }>();
  const clock = new FakeClock();
  const waiter = new KeyedWaiter(cache, clock);
  const wait = (signal?: AbortSignal) =>
    waiter.wait({
      key: KEY,
      until: ({ phase }) => phase !== 'running',
      ms: 1000,
      ...(signal === undefined ? {} : { signal }),
    });
  return { cache, clock, waiter, wait };
}

test('a wait resolves by the event, also for an object that is not there yet', async () => {
  const { cache, clock, waiter, wait } = setup();
  const waits = [wait(), wait()];
  cache.set(KEY, { phase: 'running' });
  expect(waiter.size).toBe(2);
  cache.set(KEY, { phase: 'error' });
  expect((await Promise.all(waits)).map((object) => object?.phase)).toEqual(['error', 'error']);
  expect([waiter.size, clock.pending]).toEqual([0, 0]);
  expect((await wait())?.phase).toBe('error');
});

test.each(['removal', 'time', 'client', 'stop'])(
  'a wait ends with undefined by %s and leaves nothing behind',
  async (why) => {
    const { cache, clock, waiter, wait } = setup();
    const gone = new AbortController();
    cache.set(KEY, { phase: 'running' });
    const waiting = wait(gone.signal);
    if (why === 'removal') cache.delete(KEY);
    if (why === 'time') await clock.advance(1000);
    if (why === 'client') gone.abort();
    if (why === 'stop') waiter.stop();
    expect(await waiting).toBeUndefined();
    expect([waiter.size, clock.pending]).toEqual([0, 0]);
  },
);
