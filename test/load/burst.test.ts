/**
 * A burst of runs on a real API server: nothing is lost, nothing runs twice, order and shares hold, and what it took is
 * given back. The same at 5,000: `make bench BENCH=burst`.
 */
import { runBurst } from '../bench/burst.js';

const RUNS = 300;

test(`${RUNS} calls at once all end, in order, by share, and leave nothing behind`, async () => {
  const report = await runBurst({ runs: RUNS });
  const { webhooks, messages } = report;
  expect(webhooks + messages).toBe(RUNS);
  expect(report).toMatchObject({
    accepted: RUNS,
    agentRuns: RUNS,
    terminal: RUNS,
    lost: 0,
    reasons: { Completed: RUNS },
    executedTwice: [],
    fires: webhooks,
    firesAfterRemoval: webhooks,
    outOfOrder: [],
    relists: 0,
    errors: [],
  });
  // Within 10 %, or within the one turn that was not over when the count began or ended.
  for (const { weight, started, due } of report.shares) {
    expect(Math.abs(started - due)).toBeLessThanOrEqual(Math.max(due / 10, weight));
  }
  for (const { ratio } of Object.values(report.memory)) expect(ratio).toBeLessThanOrEqual(1.2);
}, 1_200_000);
