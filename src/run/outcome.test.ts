import { keptText, outcomeOf, phaseOf, returnText, sentence, waitText } from './outcome.js';
import { QUEUE_REASONS, RUN_REASONS, isReportedReason } from './reasons.js';

test('an outcome says what happened, then the next step when there is one', () => {
  expect(outcomeOf('JobDeleted').message).toBe(
    'The Job of the run was deleted. Continue its session, or start a new run.',
  );
  expect(outcomeOf('DeadlineExceeded', 'It took 3 s.').message).toMatch(/^It took 3 s\. Raise bounds/);
  expect(outcomeOf('Cancelled', 'Gone.')).toEqual({ reason: 'Cancelled', message: 'Gone.' });
});

test('what waits, or is kept, says why and what to do', () => {
  expect(waitText('BoxPaused')).toBe('spec.paused of the Box is true. Next: Set spec.paused of the Box to false.');
  expect(returnText('NoCapacity', 'No node took it.')).toMatch(/executed\. No node took it\. Add nodes/);
  expect(keptText('ArchiveUnavailable')).toMatch(/^It was deleted, but .* Check PostgreSQL/);
});

test.each([
  ['no  room\n', 'no room.'],
  ['done.', 'done.'],
])('%j as a sentence', (text, expected) => {
  expect(sentence(text)).toBe(expected);
});

test('four reasons are no error; every other one is', () => {
  const ended = Object.keys(RUN_REASONS).filter((reason) => !['Starting', 'Working'].includes(reason));
  const byPhase = (phase: string) => ended.filter((reason) => phaseOf(reason) === phase);
  expect(byPhase('done')).toEqual(['Completed', 'StepLimitReached', 'Delivered']);
  expect(byPhase('cancelled')).toEqual(['Cancelled']);
  expect(byPhase('error')).toHaveLength(ended.length - 4);
});

test('a runner may report what it can know, and nothing that only the control plane sees', () => {
  expect([...Object.keys(RUN_REASONS), ...Object.keys(QUEUE_REASONS)].filter(isReportedReason).sort()).toEqual([
    'BudgetExhausted',
    'Cancelled',
    'Completed',
    'ContentFiltered',
    'DeadlineExceeded',
    'EmptyAnswer',
    'Interrupted',
    'ModelError',
    'ModelNotConfigured',
    'ModelRefused',
    'ModelUnpriced',
    'OutputLimitReached',
    'OutputMismatch',
    'ReplayFailed',
    'RunnerError',
    'StepLimitReached',
  ]);
});
