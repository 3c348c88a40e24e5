import { backoffDelay } from './backoff.js';

const options = { baseMs: 100, maxMs: 1000, jitter: 0.5 };

test.each([
  [1, 100],
  [2, 200],
  [3, 400],
  [4, 800],
  [5, 1000],
  [5000, 1000],
])('failure %d waits %d ms without jitter', (failures, expected) => {
  expect(backoffDelay(options, failures, () => 0)).toBe(expected);
});

test('jitter only shortens, by its share at most', () => {
  expect(backoffDelay(options, 3, () => 0.999_999)).toBe(200);
  expect(backoffDelay(options, 5000, () => 0.5)).toBe(750);
});
