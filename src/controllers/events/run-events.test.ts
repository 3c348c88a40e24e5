import { NAMESPACE, makeRun } from '../../../test/builders/run-objects.js';
import type { RunParts } from '../../../test/builders/run-objects.js';
import { endEvents, isOldWait, returnedEvent, waitingOf, warningEvents } from './run-events.js';

const NOW = Date.parse('2026-01-01T00:10:00.000Z');
const ago = (seconds: number) => new Date(NOW - seconds * 1000).toISOString();
const subject = {
  apiVersion: 'boxwright.dev/v1alpha1',
  kind: 'AgentRun',
  name: 'ada-1',
  namespace: NAMESPACE,
  uid: 'uid-ada-1',
};

const ended = (phase: 'done' | 'error' | 'cancelled', seconds: number, metadata: RunParts['metadata'] = {}) =>
  makeRun('ada-1', {
    metadata,
    status: { phase, reason: 'ModelError', message: 'The model said no.', finishedAt: ago(seconds) },
  });
const failed = {
  subject,
  type: 'Warning',
  reason: 'ModelError',
  note: 'The model said no.',
  action: 'Ended',
  at: ago(2),
};

describe('the end of a run', () => {
  it.each([
    ['in an error is a warning', ended('error', 2), [failed]],
    ['by being cancelled is normal', ended('cancelled', 2), [{ ...failed, type: 'Normal' }]],
    ['that is good is no event', ended('done', 2), []],
    ['that is deleted is no event', ended('error', 2, { deletionTimestamp: ago(3) }), []],
  ])('%s', (_what, current, events) => {
    expect(endEvents({ previous: makeRun(), current }, NOW)).toEqual(events);
  });

  it('is told once: a change of a run that has ended, and a resync, are no ends', () => {
    const current = ended('error', 2);
    expect(endEvents({ previous: current, current: { ...current } }, NOW)).toEqual([]);
    expect(endEvents({ previous: current, current }, NOW)).toEqual([]);
  });

  it('is told by the next leader as well when it was within the last minute, of the same time', () => {
    expect(endEvents({ current: ended('error', 2) }, NOW)).toEqual([failed]);
    expect(endEvents({ current: ended('error', 60) }, NOW)).toHaveLength(1);
    expect(endEvents({ current: ended('error', 61) }, NOW)).toEqual([]);
  });

  it('that a watch saw late is told however old it is', () => {
    expect(endEvents({ previous: makeRun(), current: ended('error', 500) }, NOW)).toHaveLength(1);
  });

  it('holds no secret', () => {
    const message = `Bearer abcdef of https://example.com/api/t/a/b/c with bw_${'x'.repeat(24)}`;
    const current = makeRun('ada-1', { status: { phase: 'error', reason: 'ModelError', message } });
    const note = 'Bearer [redacted] of https://example.com/api/t/[redacted] with bw_[redacted]';
    expect(endEvents({ previous: makeRun(), current }, NOW)).toMatchObject([{ note }]);
  });
});

describe('a run that waits', () => {
  const queued = (seconds: number, parts: RunParts = {}) =>
    makeRun('ada-1', {
      ...parts,
      status: {
        conditions: [
          { type: 'Queued', status: 'True', reason: 'BoxLimit', message: 'Wait.', lastTransitionTime: ago(seconds) },
        ],
        ...parts.status,
      },
    });

  it('is told as its status says, of the time at which it was due', () => {
    const event = { subject, type: 'Normal', reason: 'BoxLimit', note: 'Wait.', action: 'Queued' };
    expect(waitingOf(queued(10), NOW)).toEqual({
      reason: 'BoxLimit',
      forMs: 10_000,
      event: { ...event, at: ago(-20) },
    });
    expect(waitingOf(queued(40), NOW)?.event.at).toBe(ago(10));
  });

  it('is told of now when it waited for long under another reason', () => {
    expect(waitingOf(queued(300), NOW)?.event.at).toBe(ago(0));
  });

  it('was told by the leader before when it should have been told more than a minute ago', () => {
    expect([90_000, 90_001].map((forMs) => isOldWait({ forMs }))).toEqual([false, true]);
  });

  it.each([
    ['has no status', makeRun()],
    ['has ended', queued(40, { status: { phase: 'error' } })],
    ['is being deleted', queued(40, { metadata: { deletionTimestamp: ago(1) } })],
  ])('is not one that %s', (_what, run) => {
    expect(waitingOf(run, NOW)).toBeUndefined();
  });
});

test('a run that goes back to the queue is a warning of now', () => {
  expect(returnedEvent(makeRun(), { reason: 'NoCapacity', message: 'No room.' }, NOW)).toEqual({
    subject,
    type: 'Warning',
    reason: 'NoCapacity',
    note: 'No room.',
    action: 'ReturnedToQueue',
    at: ago(0),
  });
});

describe('what a run warns of', () => {
  const claimed = {
    podUid: 'p',
    podName: 'p',
    at: ago(30),
    gatewayPod: 'g',
    gatewayUid: 'g',
    gatewayAddress: 'g',
    epoch: 1,
  };
  const working = (...warnings: string[]) => makeRun('ada-1', { status: { claim: claimed, warnings } });
  const warning = { subject, type: 'Warning', reason: 'RunWarning', action: 'Warned', at: ago(30) };

  it.each([
    ['all of it when it is seen first', undefined, working('a', 'b'), ['a\nb']],
    ['what is new', working('a'), working('a', 'b'), ['b']],
    ['nothing of what was told', working('a'), working('a'), []],
    ['nothing where there is none', undefined, working(), []],
  ])('is told: %s', (_what, previous, current, notes) => {
    expect(warningEvents({ previous, current }, NOW)).toEqual(notes.map((note) => ({ ...warning, note })));
  });

  it('is no news for the next leader after a minute, nor once the run is deleted', () => {
    const old = makeRun('ada-1', { status: { phase: 'done', finishedAt: ago(61), warnings: ['a'] } });
    expect(warningEvents({ current: old }, NOW)).toEqual([]);
    const gone = makeRun('ada-1', { metadata: { deletionTimestamp: ago(1) }, status: { warnings: ['a'] } });
    expect(warningEvents({ previous: working(), current: gone }, NOW)).toEqual([]);
  });
});
