import { FakeClock } from '../../test/builders/fake-clock.js';
import { DownloadLimits, MAX_OPEN, MAX_OPEN_OF_BOX } from './limits.js';

test('a Box downloads so many files at once, and holds up no other one', () => {
  const limits = new DownloadLimits(new FakeClock());
  const ends = Array.from({ length: MAX_OPEN_OF_BOX }, () => limits.begin('a'));
  expect(ends.every((end) => end !== undefined)).toBe(true);
  expect(limits.begin('a')).toBeUndefined();
  expect(limits.begin('b')).toBeDefined();
  // Ending twice frees one place.
  ends[0]?.();
  ends[0]?.();
  expect(limits.begin('a')).toBeDefined();
  expect(limits.begin('a')).toBeUndefined();
});

test('a pod holds so many files at once', () => {
  const limits = new DownloadLimits(new FakeClock());
  const begun = Array.from({ length: MAX_OPEN + 1 }, (_, index) => limits.begin(`box-${index}`));
  expect(begun.map((end) => end !== undefined)).toEqual([...Array<boolean>(MAX_OPEN).fill(true), false]);
});

test('a Box has a rate with bursts', async () => {
  const clock = new FakeClock();
  const limits = new DownloadLimits(clock);
  const through = (calls: number) => Array.from({ length: calls }, () => limits.begin('a')?.()).length;
  const passed = () => {
    let count = 0;
    for (let end = limits.begin('a'); end !== undefined; end = limits.begin('a')) {
      count += 1;
      end();
    }
    return count;
  };
  expect(through(10)).toBe(10);
  expect(passed()).toBe(50);
  await clock.advance(1000);
  expect(passed()).toBe(10);
});
