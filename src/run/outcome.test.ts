import { keptText, outcomeOf, returnText, sentence, waitText } from './outcome.js';

test('an outcome says what happened, then the next step when there is one', () => {
  expect(outcomeOf('JobDeleted').message).toBe(
    'The Job of the run was deleted. Start a new run; a run is never repeated by itself.',
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
