import { costOf, priceOf } from './prices.js';
import { NO_USAGE, addCall } from './usage.js';

const TABLE = {
  'vendor/big': { inputMicroUsd: 3_000_000, outputMicroUsd: 15_000_000 },
  'vendor/fast-*': { inputMicroUsd: 1_000_000, outputMicroUsd: 2_000_000 },
  'vendor/fast-big': { inputMicroUsd: 2_000_000, outputMicroUsd: 2_000_000 },
  'local/': { inputMicroUsd: 0, outputMicroUsd: 0 },
};

test.each([
  ['its name', 'vendor/big', 'vendor/big'],
  ['its name with a date', 'vendor/big-2026-05-01', 'vendor/big'],
  ['the beginning of its name', 'vendor/fast-2', 'vendor/fast-*'],
  ['the longest that fits', 'vendor/fast-big', 'vendor/fast-big'],
  ['its provider', 'local/anything', 'local/'],
] as const)('a model has a price by %s', (_how, wanted, found) => {
  const [engine = '', model = ''] = wanted.split('/');
  expect(priceOf(TABLE, engine, model)).toBe(TABLE[found]);
});

test.each(['big-2', 'bigger', 'small'])('model %s has no known price', (model) => {
  expect(priceOf(TABLE, 'vendor', model)).toBeUndefined();
});

const counts = (inputTokens: number, outputTokens: number, cacheReadTokens = 0, cacheWriteTokens = 0) => ({
  inputTokens,
  outputTokens,
  cacheReadTokens,
  cacheWriteTokens,
});

test('costs are whole micro-USD, rounded up; an unknown price has none', () => {
  expect(costOf(TABLE['vendor/big'], counts(1000, 100))).toBe(4500);
  expect(costOf(TABLE['vendor/big'], counts(0, 0))).toBe(0);
  expect(costOf({ inputMicroUsd: 1, outputMicroUsd: 0 }, counts(1, 0))).toBe(1);
  expect(costOf(undefined, counts(1000, 100))).toBeUndefined();
});

test('cached input has its own price, and without one that of other input', () => {
  const price = { ...TABLE['vendor/big'], cacheReadMicroUsd: 300_000, cacheWriteMicroUsd: 3_750_000 };
  expect(costOf(price, counts(1000, 0, 600, 100))).toBe(Math.ceil(300 * 3 + 600 * 0.3 + 100 * 3.75));
  expect(costOf(TABLE['vendor/big'], counts(1000, 0, 600, 100))).toBe(3000);
});

test('a call without an answer is paid for and is no step', () => {
  const call = { inputTokens: 10, outputTokens: 5, costMicroUsd: 7, unanswered: true };
  expect(addCall(NO_USAGE, call)).toEqual({
    steps: 0,
    inputTokens: 10,
    outputTokens: 5,
    totalTokens: 15,
    costUsd: '0.000007',
  });
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
