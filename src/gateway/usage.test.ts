import { costOf, priceOf } from './prices.js';
import { NO_USAGE, addCall } from './usage.js';

const TABLE = {
  'vendor/big': { inputMicroUsd: 3_000_000, outputMicroUsd: 15_000_000 },
  'vendor/big-fast': { inputMicroUsd: 1_000_000, outputMicroUsd: 2_000_000 },
};

test('the longest beginning of the name decides the price', () => {
  expect(priceOf(TABLE, 'vendor', 'big-fast-2')).toBe(TABLE['vendor/big-fast']);
  expect(priceOf(TABLE, 'vendor', 'big-2')).toBe(TABLE['vendor/big']);
  expect(priceOf(TABLE, 'vendor', 'small')).toBeUndefined();
});

test('costs are whole micro-USD, rounded up; an unknown price has none', () => {
  expect(costOf(TABLE['vendor/big'], 1000, 100)).toBe(4500);
  expect(costOf(TABLE['vendor/big'], 0, 0)).toBe(0);
  expect(costOf({ inputMicroUsd: 1, outputMicroUsd: 0 }, 1, 0)).toBe(1);
  expect(costOf(undefined, 1000, 100)).toBeUndefined();
});

test('calls add up', () => {
  const one = addCall(NO_USAGE, { inputTokens: 10, outputTokens: 5, costMicroUsd: 1_500_000 });
  expect(addCall(one, { inputTokens: 1, outputTokens: 2, costMicroUsd: 1 })).toEqual({
    steps: 2,
    inputTokens: 11,
    outputTokens: 7,
    totalTokens: 18,
    costUsd: '1.500001',
  });
});

test('one call without a price leaves the whole cost unknown, never 0', () => {
  const one = addCall(NO_USAGE, { inputTokens: 10, outputTokens: 5, costMicroUsd: undefined });
  expect('costUsd' in one).toBe(false);
  expect('costUsd' in addCall(one, { inputTokens: 1, outputTokens: 1, costMicroUsd: 5 })).toBe(false);
});
