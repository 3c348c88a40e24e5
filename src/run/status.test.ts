import { formatDuration, isClaimed, isSettled, isTerminal, type RunStatus } from './status.js';

const claim = { podUid: '', podName: '', at: '', gatewayPod: '', gatewayUid: '', gatewayAddress: '', epoch: 1 };

test.each<[RunStatus | undefined, boolean, boolean, boolean]>([
  [undefined, false, false, false],
  [{ phase: 'running' }, false, false, false],
  [{ phase: 'running', claim }, true, false, false],
  [{ phase: 'running', usageFinal: true }, false, false, false],
  [{ phase: 'done', claim }, true, true, false],
  [{ phase: 'error', claim, usageFinal: true }, true, true, true],
  [{ phase: 'cancelled', usageFinal: true }, false, true, true],
])('a run with status %j is claimed (%p), terminal (%p), settled (%p)', (status, claimed, terminal, settled) => {
  const run = status === undefined ? {} : { status };
  expect([isClaimed(run), isTerminal(run), isSettled(run)]).toEqual([claimed, terminal, settled]);
});

test.each([
  [-5, '0ms'],
  [850, '850ms'],
  [12_340, '12.3s'],
  [250_000, '4m10s'],
  [7_500_000, '2h05m'],
])('%d ms reads %s', (ms, text) => {
  expect(formatDuration(ms)).toBe(text);
});
