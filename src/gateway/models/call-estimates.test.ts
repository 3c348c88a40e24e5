import { CallEstimates } from './call-estimates.js';

const counts = (inputTokens: number, cached: { read?: number; write?: number } = {}) => ({
  inputTokens,
  cacheReadTokens: cached.read ?? 0,
  cacheWriteTokens: cached.write ?? 0,
  outputTokens: 1,
});

test.each(['anthropic', 'openai', 'boxwright'])(
  'over the calls of a run with %s the estimate is never below the count, and within 15 % of it',
  (provider) => {
    const estimates = new CallEstimates(provider);
    const [estimated, told] = [{ sum: 0 }, { sum: 0 }];
    // The provider counts 8 % more than we measure; steps bring a file, a sentence, a long listing.
    let measured = 2_000;
    for (const more of [900, 40, 6_000, 300, 12_000, 50, 2_500, 700, 30, 4_000]) {
      const count = Math.ceil(measured * 1.08);
      estimated.sum += estimates.inputOf(measured);
      told.sum += count;
      estimates.learn(measured, counts(count));
      measured += more;
    }
    expect(estimated.sum / told.sum).toBeGreaterThanOrEqual(1);
    expect(estimated.sum / told.sum).toBeLessThan(1.15);
  },
);

test('a conversation that was summarised is measured anew, as its provider counts', () => {
  const estimates = new CallEstimates('openai');
  estimates.learn(10_000, counts(20_000));
  expect(estimates.inputOf(10_000)).toBe(20_000);
  expect(estimates.inputOf(1_000)).toBe(2_200);
});

test('a call that never said what it used read from the cache what the call before left there', () => {
  const estimates = new CallEstimates('openai');
  expect(estimates.countsOf({ measured: 100, written: 0 })).toEqual({ ...counts(113), outputTokens: 0 });
  estimates.learn(1_000, counts(1_000, { read: 600, write: 100 }));
  expect(estimates.countsOf({ measured: 1_200, written: 50 })).toEqual({
    inputTokens: 1_200,
    cacheReadTokens: 700,
    cacheWriteTokens: 0,
    outputTokens: 50,
  });
});

test('a provider that counts oddly does not make the estimate absurd', () => {
  const estimates = new CallEstimates('boxwright');
  estimates.learn(1_000, counts(100_000_000));
  expect(estimates.inputOf(900)).toBeLessThan(4_000);
  estimates.learn(1_000, counts(1));
  expect(estimates.inputOf(1_100)).toBe(29);
});
