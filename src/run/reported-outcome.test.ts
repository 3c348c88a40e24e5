import { reportedOutcome } from './reported-outcome.js';

test('a runner says how it ended, without secrets and in at most 1 KiB', () => {
  expect(reportedOutcome({ reason: 'ModelError', message: 'sent Bearer abc123' })).toEqual({
    reason: 'ModelError',
    message: 'sent Bearer [redacted]',
  });
  expect(reportedOutcome({ reason: 'Completed', message: 'é'.repeat(1_000) })?.message).toBe('é'.repeat(512));
});

test.each(['NodeLost', 'Queued', 'toString', ''])('a runner cannot say %p', (reason) => {
  expect(reportedOutcome({ reason, message: '' })).toBeUndefined();
});
