import * as fc from '../../../test/builders/properties.js';
import { RunBudget, RunUsage, OpenCall } from '../../api/v1alpha1/agent-run.js';
import { FoldedTotals } from '../../api/v1alpha1/common.js';
import { amountOf, addToPeriods } from './budget.js';
import { formatMicroUsd, parseMicroUsd } from './money.js';
import { amountInUse, openCallOf, usageWithOpenCall } from './open-call.js';
import { believableCounts, costOf } from './prices.js';
import { MAX_CALL_TOKENS, MAX_COUNT, sumOf, withinCounts } from './saturating.js';
import { rollUp, totalsOf } from './totals.js';
import { NO_USAGE, addCall } from './usage.js';

test.each([
  [[], 0],
  [[1, 2, 3], 6],
  [[MAX_COUNT, 1], MAX_COUNT],
  [[MAX_COUNT - 1, 1], MAX_COUNT],
  [[MAX_COUNT, MAX_COUNT, MAX_COUNT], MAX_COUNT],
  [[Infinity], MAX_COUNT],
  [[NaN, 5], 5],
  [[-5, 5], 5],
])('the sum of %j is %d', (counts, sum) => {
  expect(sumOf(...counts)).toBe(sum);
});

test('counts are whole, and money too large to show is shown as the most', () => {
  expect(withinCounts(1.2)).toBe(2);
  expect(formatMicroUsd(Infinity)).toBe('9007199254.740991');
  expect(parseMicroUsd('9007199254.740991')).toBe(MAX_COUNT);
  expect(parseMicroUsd('9'.repeat(24))).toBe(MAX_COUNT);
});

test('no call is believed more than any model can use', () => {
  const told = { inputTokens: MAX_COUNT, outputTokens: MAX_COUNT, cacheReadTokens: 2 * MAX_COUNT, cacheWriteTokens: 5 };
  expect(believableCounts(told)).toEqual({
    inputTokens: MAX_CALL_TOKENS,
    outputTokens: MAX_CALL_TOKENS,
    cacheReadTokens: MAX_CALL_TOKENS,
    cacheWriteTokens: 5,
  });
});

/** Any number that a server, a price list or a status of an earlier version may give. */
const anyNumber = fc.oneof(
  fc.nat(),
  fc.constantFrom(0, 1, MAX_CALL_TOKENS, MAX_COUNT - 1, MAX_COUNT, 2 * MAX_COUNT, 1e300, Infinity),
);
const anyCall = fc.record({
  inputTokens: anyNumber,
  outputTokens: anyNumber,
  costMicroUsd: fc.option(anyNumber, { nil: undefined }),
  unanswered: fc.boolean(),
});

test('no sequence of calls and removed runs gives a value that the CRDs refuse', () => {
  fc.assert(
    fc.property(fc.array(anyCall, { minLength: 1, maxLength: 8 }), anyCall, (calls, open) => {
      const usage = calls.reduce(addCall, NO_USAGE);
      const openCall = openCallOf(open);
      const charged = usageWithOpenCall({ usage, openCall });
      for (const used of [usage, charged]) expect(RunUsage.safeParse(used).error).toBeUndefined();
      expect(OpenCall.safeParse(openCall).error).toBeUndefined();

      const at = '2026-01-01T00:00:00Z';
      const runs = calls.map((_, i) => ({ uid: `${i}`, createdAt: at, countedAt: at, usage: charged }));
      const folded = rollUp(rollUp(undefined, runs), runs);
      expect(FoldedTotals.safeParse(folded).error).toBeUndefined();
      expect(folded.periods).toEqual(addToPeriods(folded.periods, at, { tokens: 0, microUsd: 0 }));

      const totals = totalsOf(folded, [], runs);
      for (const sum of [totals.inputTokens, totals.outputTokens, totals.costMicroUsd ?? 0]) {
        expect(Number.isSafeInteger(sum)).toBe(true);
      }
      const amount = amountInUse({ usage, openCall });
      expect(amount.tokens).toBeGreaterThanOrEqual(amountOf(usage).tokens);
      const granted = { tokens: amount.tokens, usd: formatMicroUsd(amount.microUsd) };
      expect(RunBudget.safeParse({ at, granted }).error).toBeUndefined();
    }),
  );
});

test('the cost of a believable call at any price is a count', () => {
  fc.assert(
    fc.property(anyNumber, anyNumber, anyNumber, (price, inputTokens, outputTokens) => {
      const counts = { inputTokens, outputTokens, cacheReadTokens: 0, cacheWriteTokens: 0 };
      const prices = { inputMicroUsd: Math.min(price, 1e15), outputMicroUsd: Math.min(price, 1e15) };
      expect(Number.isSafeInteger(costOf(prices, believableCounts(counts)))).toBe(true);
    }),
  );
});
