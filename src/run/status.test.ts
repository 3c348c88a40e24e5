import { QUEUE_REASONS, RUN_REASONS, isReportedReason } from './reasons.js';
import { claimedStatus, finishedStatus, formatDuration, isTerminal, queuedStatus } from './status.js';
import type { AgentRun } from '../api/v1alpha1/agent-run.js';
import { phaseOf } from './outcome.js';

const ACCEPTED = '2026-01-01T00:00:00.000Z';
const NOW = '2026-01-01T00:00:12.340Z';

const fresh: AgentRun = {
  apiVersion: 'boxwright.dev/v1alpha1',
  kind: 'AgentRun',
  metadata: { name: 'worker-1', namespace: 'bw-a' },
  spec: { agent: 'worker', message: 'hello' },
  status: { phase: 'running' },
};

const CLAIM = {
  podUid: 'u1',
  podName: 'worker-1-x',
  at: NOW,
  gatewayPod: 'g',
  gatewayUid: 'gu',
  gatewayAddress: '10.0.0.1:8443',
  epoch: 1,
};

describe('the status of a run', () => {
  test('a queued run is running, with the reason why it waits', () => {
    const status = queuedStatus(fresh, 'SessionBusy', 'another run works', NOW);
    expect(status).toMatchObject({ phase: 'running', reason: 'SessionBusy', message: 'another run works' });
  });

  test('a claimed run is working, and waits no longer', () => {
    const queued: AgentRun = { ...fresh, status: queuedStatus(fresh, 'BoxLimit', 'full', ACCEPTED) };
    const status = claimedStatus(queued, CLAIM, NOW);
    expect(status).toMatchObject({ phase: 'running', reason: 'Working', claim: CLAIM });
    expect(status.conditions).toEqual([
      { type: 'Queued', status: 'False', reason: 'Admitted', message: '', lastTransitionTime: NOW },
      { type: 'Started', status: 'True', reason: 'Claimed', message: '', lastTransitionTime: NOW },
    ]);
  });

  test('an ended run has its outcome, its time and its duration, and is terminal', () => {
    const status = finishedStatus(fresh, { reason: 'PodDeleted', message: 'gone' }, ACCEPTED, NOW);
    expect(status).toMatchObject({
      phase: 'error',
      reason: 'PodDeleted',
      message: 'gone',
      finishedAt: NOW,
      duration: '12.3s',
    });
    expect(isTerminal({ status })).toBe(true);
    expect(isTerminal(fresh)).toBe(false);
  });

  test('three reasons are no error; every other one is', () => {
    const ended = Object.keys(RUN_REASONS).filter((reason) => !['Starting', 'Working'].includes(reason));
    const byPhase = (phase: string) => ended.filter((reason) => phaseOf(reason) === phase);
    expect(byPhase('done')).toEqual(['Completed', 'StepLimitReached']);
    expect(byPhase('cancelled')).toEqual(['Cancelled']);
    expect(byPhase('error')).toHaveLength(ended.length - 3);
  });

  test('a runner may report what it can know, and nothing that only the control plane sees', () => {
    expect([...Object.keys(RUN_REASONS), ...Object.keys(QUEUE_REASONS)].filter(isReportedReason).sort()).toEqual([
      'BudgetExhausted',
      'Cancelled',
      'Completed',
      'DeadlineExceeded',
      'Interrupted',
      'ModelError',
      'ModelNotConfigured',
      'ModelUnpriced',
      'RunnerError',
      'StepLimitReached',
    ]);
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
});
