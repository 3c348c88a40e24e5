import { array, assert, asyncProperty, integer } from '../../test/builders/properties.js';
import { FakeClock } from '../../test/builders/fake-clock.js';
import { TimerHeap } from './timer-heap.js';

function newHeap() {
  const clock = new FakeClock();
  const due: string[] = [];
  return { clock, due, heap: new TimerHeap(clock, (key) => due.push(`${key}@${clock.monotonic()}`)) };
}

test('keys come at their time, on one timer', async () => {
  const { clock, due, heap } = newHeap();
  heap.add('c', 30);
  heap.add('a', 10);
  heap.add('b', 20);
  const timers = clock.pending;

  await clock.advance(100);

  expect(timers).toBe(1);
  expect(due).toEqual(['a@10', 'b@20', 'c@30']);
  expect(clock.pending).toBe(0);
});

test('of several times for one key the earliest counts, and it comes once', async () => {
  const { clock, due, heap } = newHeap();
  heap.add('a', 50);
  heap.add('a', 10);
  heap.add('a', 90);
  const waiting = heap.size;

  await clock.advance(100);

  expect(waiting).toBe(1);
  expect(due).toEqual(['a@10']);
});

test('a time beyond what a Node timer can hold is kept', async () => {
  const { clock, due, heap } = newHeap();
  const ninetyDays = 90 * 24 * 3_600_000;
  heap.add('a', ninetyDays);

  await clock.advance(ninetyDays - 1);
  const before = [...due];
  await clock.advance(1);

  expect(before).toEqual([]);
  expect(due).toEqual([`a@${ninetyDays}`]);
});

test('whatever is added, everything comes in order of time', async () => {
  await assert(
    asyncProperty(array(integer({ min: 1, max: 500 }), { maxLength: 60 }), async (delays) => {
      const { clock, due, heap } = newHeap();
      delays.forEach((delay, index) => heap.add(String(index), delay));

      await clock.advance(500);

      const times = due.map((entry) => Number(entry.split('@')[1]));
      expect(times).toEqual([...delays].sort((a, b) => a - b));
    }),
    { numRuns: 30 },
  );
});
