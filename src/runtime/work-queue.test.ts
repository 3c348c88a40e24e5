import { FakeClock } from '../../test/builders/fake-clock.js';
import { Fifo } from './fifo.js';
import { WorkQueue } from './work-queue.js';

function newQueue() {
  const clock = new FakeClock();
  const queue = new WorkQueue({ clock, backoff: { baseMs: 100, maxMs: 1000, jitter: 0.2 }, random: () => 0 });
  return { clock, queue };
}

test('a key that waits is taken once, however often it was added; order is kept', async () => {
  const { queue } = newQueue();
  for (const key of ['a', 'b', 'a', 'c', 'a']) queue.add(key);

  expect(queue.length).toBe(3);
  expect([await queue.take(), await queue.take(), await queue.take()]).toEqual(['a', 'b', 'c']);
  expect(queue.length).toBe(0);
});

test('namespaces take turns, and the keys of each keep their order', async () => {
  const { queue } = newQueue();
  for (const key of ['a/1', 'a/2', 'a/3', 'b/1', 'all', 'b/2', 'a/4']) queue.add(key);
  const taken: (string | undefined)[] = [];
  for (let i = 0; i < 4; i++) taken.push(await queue.take());
  queue.add('c/1');
  while (queue.length > 0) taken.push(await queue.take());
  expect(taken).toEqual(['a/1', 'b/1', 'all', 'a/2', 'b/2', 'a/3', 'c/1', 'a/4']);
});

test('a key that is added while it is processed waits for done, and is taken once more', async () => {
  const { queue } = newQueue();
  queue.add('a');
  await queue.take();
  queue.add('a');
  queue.add('a');
  const whileProcessed = queue.length;

  queue.done('a');

  expect(whileProcessed).toBe(0);
  expect(queue.length).toBe(1);
  expect(await queue.take()).toBe('a');
  queue.done('a');
  expect(queue.length).toBe(0);
});

test('a taker that waits gets the next key', async () => {
  const { queue } = newQueue();
  const taken = queue.take();

  queue.add('a');

  expect(await taken).toBe('a');
  expect(queue.length).toBe(0);
});

test('a delayed key comes after its time, and earlier when it is added', async () => {
  const { clock, queue } = newQueue();
  queue.addAfter('a', 100);
  queue.addAfter('b', 100);
  queue.add('b');
  const atOnce = queue.length;

  await clock.advance(100);

  expect(atOnce).toBe(1);
  expect(queue.length).toBe(2);
});

test('the backoff of a key doubles until it is forgotten; keys do not share it', () => {
  const { queue } = newQueue();

  const delays = ['a', 'a', 'a', 'b', 'a', 'a'].map((key) => queue.addRateLimited(key));
  queue.forget('a');

  expect(delays).toEqual([100, 200, 400, 100, 800, 1000]);
  expect(queue.addRateLimited('a')).toBe(100);
});

test('after shutDown takers end, and nothing is taken any more', async () => {
  const { clock, queue } = newQueue();
  const waiting = queue.take();
  queue.addAfter('later', 10);

  queue.shutDown();
  queue.add('a');
  queue.addAfter('b', 1);
  await clock.advance(100);

  expect(await waiting).toBeUndefined();
  expect(await queue.take()).toBeUndefined();
  expect(clock.pending).toBe(0);
});

test('the fifo keeps order over its own clean-ups', () => {
  const fifo = new Fifo<number>();
  const out: (number | undefined)[] = [];
  for (let i = 0; i < 100; i++) {
    fifo.push(2 * i);
    fifo.push(2 * i + 1);
    out.push(fifo.shift());
  }
  while (fifo.length > 0) out.push(fifo.shift());

  expect(out).toEqual(Array.from({ length: 200 }, (_, i) => i));
  expect(fifo.shift()).toBeUndefined();
});
