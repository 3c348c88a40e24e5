import { stepEvent, userMessage } from '../../../test/builders/run-events.js';
import { LiveBudget, LiveEvents } from './live-events.js';

const MIB = 1024 * 1024;
const seqs = ({ events }: ReturnType<LiveEvents['after']>) => events.map(({ seq }) => seq);
const steps = (first: number, last: number) =>
  Array.from({ length: last - first + 1 }, (_, index) => stepEvent(first + index));

test('what is told is there until it is stored, once each', () => {
  const live = new LiveEvents(new LiveBudget());
  live.tell(steps(1, 3));
  live.tell(steps(2, 5));
  expect(seqs(live.after(0))).toEqual([1, 2, 3, 4, 5]);
  expect(seqs(live.after(3))).toEqual([4, 5]);
  expect(live.last).toBe(5);
  live.stored(4);
  live.tell(steps(3, 5));
  expect(live.after(0)).toEqual({ events: steps(5, 5), incomplete: false });
  live.stored(9);
  expect(live.after(0)).toEqual({ events: [], incomplete: false });
  expect(live.last).toBe(9);
});

test('without room the oldest go, and whoever looks is told so until they are stored', () => {
  const live = new LiveEvents(new LiveBudget());
  live.tell(steps(1, 130));
  expect(seqs(live.after(0))).toEqual(steps(3, 130).map(({ seq }) => seq));
  expect([live.after(0).incomplete, live.after(1).incomplete, live.after(2).incomplete]).toEqual([true, true, false]);
  live.stored(2);
  expect(live.after(0).incomplete).toBe(false);
});

test('a run holds 2 MiB, and all runs of a process hold their limit together', () => {
  const budget = new LiveBudget(4 * MIB);
  const [one, other, third] = [new LiveEvents(budget), new LiveEvents(budget), new LiveEvents(budget)];
  for (const live of [one, other, third]) {
    for (let seq = 1; seq <= 5; seq++) live.tell([userMessage(seq, 'x'.repeat(MIB / 2))]);
    expect(live.last).toBe(5);
  }
  expect([seqs(one.after(0)), seqs(other.after(0)), seqs(third.after(0))]).toEqual([[3, 4, 5], [3, 4, 5], [5]]);
  expect(budget.bytes).toBeLessThanOrEqual(4 * MIB);
  for (const live of [one, other, third]) live.clear();
  expect(budget.bytes).toBe(0);
});
