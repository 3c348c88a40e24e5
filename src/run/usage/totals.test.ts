import { rollUp, totalsOf } from './totals.js';
import type { CountedRun } from './totals.js';

function run(uid: string, minute: number, costUsd?: string): CountedRun {
  const createdAt = `2026-01-01T00:0${minute}:00.000Z`;
  const usage = { steps: 1, inputTokens: 10, outputTokens: 2, totalTokens: 12 };
  return { uid, createdAt, usage: costUsd === undefined ? usage : { ...usage, costUsd } };
}

describe('totalsOf', () => {
  it('shows null instead of a time or a cost before the first run', () => {
    expect(totalsOf(undefined, undefined, [])).toEqual({
      runs: 0,
      inputTokens: 0,
      outputTokens: 0,
      costMicroUsd: null,
      lastRunAt: null,
    });
  });

  it('adds live runs to the base and counts a run whose UID is in folding once', () => {
    const base = rollUp(undefined, [run('a', 3, '0.000100')]);
    const totals = totalsOf(base, ['a'], [run('a', 3, '0.000100'), run('b', 2, '1.000000'), run('c', 1)]);
    expect(totals).toEqual({
      runs: 3,
      inputTokens: 30,
      outputTokens: 6,
      costMicroUsd: 1_000_100,
      lastRunAt: '2026-01-01T00:03:00.000Z',
    });
  });

  it('keeps an unknown cost unknown', () => {
    expect(totalsOf(undefined, undefined, [run('a', 1)]).costMicroUsd).toBeNull();
    expect(totalsOf(undefined, undefined, [run('a', 1, '0.000000')]).costMicroUsd).toBe(0);
  });

  it.each([
    ['a known cost of 0', rollUp(undefined, [run('a', 1, '0.000000')]), 0],
    ['no known cost', rollUp(undefined, [run('a', 1)]), null],
    ['a cost, in a sum of an earlier version', { runs: 1, inputTokens: 1, outputTokens: 1, costMicroUsd: 5 }, 5],
    ['0, in a sum of an earlier version', { runs: 1, inputTokens: 1, outputTokens: 1, costMicroUsd: 0 }, null],
  ])('still knows of removed runs that they had %s', (_what, folded, cost) => {
    expect(totalsOf(folded, undefined, []).costMicroUsd).toBe(cost);
  });

  it('counts a run that has not reported usage as a run', () => {
    const waiting = { uid: 'a', createdAt: '2026-01-01T00:00:00.000Z', usage: undefined };
    expect(totalsOf(undefined, undefined, [waiting])).toMatchObject({ runs: 1, inputTokens: 0 });
  });

  it('does not change the base that it is given', () => {
    const base = Object.freeze(rollUp(undefined, [run('a', 1)]));
    rollUp(base, [run('b', 2)]);
    expect(base.runs).toBe(1);
  });
});
