import { amountInUse, openCallOf, usageWithOpenCall } from './open-call.js';

const usage = { steps: 2, inputTokens: 10, outputTokens: 5, totalTokens: 15, costUsd: '0.000100' };
const openCall = { inputTokens: 100, outputTokens: 50, costUsd: '0.002000' };
const charged = { steps: 2, inputTokens: 110, outputTokens: 55, totalTokens: 165, costUsd: '0.002100' };

test('a call that nobody counted is paid for in full, and is no step', () => {
  expect(usageWithOpenCall({ usage, openCall })).toEqual(charged);
  expect(usageWithOpenCall({ usage, openCall: { inputTokens: 1, outputTokens: 1 } })).not.toHaveProperty('costUsd');
  expect(usageWithOpenCall({ openCall })).toMatchObject({ steps: 0, totalTokens: 150, costUsd: '0.002000' });
});

test('without an open call usage is what it is', () => {
  expect(usageWithOpenCall({ usage })).toBe(usage);
  expect(usageWithOpenCall({})).toBeUndefined();
});

test('what a live run may use contains the open call', () => {
  expect(amountInUse({ usage, openCall })).toEqual({ tokens: 165, microUsd: 2_100 });
  expect(amountInUse({ usage, openCall: { inputTokens: 1, outputTokens: 1 } })).toEqual({ tokens: 17, microUsd: 100 });
  expect(amountInUse({})).toEqual({ tokens: 0, microUsd: 0 });
});

test('an unknown price of a call in flight stays unknown', () => {
  expect(openCallOf({ inputTokens: 1, outputTokens: 2, costMicroUsd: undefined })).not.toHaveProperty('costUsd');
  expect(openCallOf({ inputTokens: 1, outputTokens: 2, costMicroUsd: 7 })).toMatchObject({ costUsd: '0.000007' });
});
