import type { ServedRun } from '../runs/served-runs.js';
import { NO_USAGE, type CallUsage } from '../../run/usage/usage.js';
import { ModelCallInFlight } from './call-in-flight.js';

test('a call that was cut is charged once, also when its answer was on the way', () => {
  const served = { usage: NO_USAGE } as ServedRun;
  const charged: CallUsage[] = [];
  const call = new ModelCallInFlight(served, (usage) => charged.push(usage));
  const spent = { inputTokens: 10, outputTokens: 20, costMicroUsd: 10 };
  call.send(() => spent);
  // The answer goes on while it is read.
  spent.outputTokens = 500;
  spent.costMicroUsd = 30;
  call.abort();
  expect(call.answered({ inputTokens: 8, outputTokens: 2, costMicroUsd: 5 })).toBe(0);
  call.lost();
  expect(served.usage).toEqual({
    steps: 0,
    inputTokens: 10,
    outputTokens: 500,
    totalTokens: 510,
    costUsd: '0.000030',
  });
  expect(charged).toEqual([{ inputTokens: 10, outputTokens: 500, costMicroUsd: 30, unanswered: true }]);
});
