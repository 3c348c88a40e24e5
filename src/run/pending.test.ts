import { pendingRecordOf } from './pending.js';

const outcome = { reason: 'Completed', message: '', output: null };
const question = { kind: 'question' as const, text: 'Which?', callId: 'c1' };
const approval = { kind: 'approval' as const, text: 'May I?', callId: 'c1', tool: 'shell', input: '{"command":"ls"}' };

test('a question keeps text and choices, an approval its tool and arguments', () => {
  expect(pendingRecordOf({ ...outcome, pending: { ...question, choices: ['a', 'b'] } })).toEqual({
    kind: 'question',
    text: 'Which?',
    choices: ['a', 'b'],
    callId: 'c1',
  });
  expect(pendingRecordOf({ ...outcome, pending: approval })).toEqual(approval);
});

test('texts and choices are cut to the bounds of the status', () => {
  const choices = Array.from({ length: 30 }, () => 'é'.repeat(150));
  const pending = pendingRecordOf({ ...outcome, pending: { ...question, text: 'é'.repeat(3000), choices } });
  expect(Buffer.byteLength(pending?.text ?? '')).toBe(4096);
  expect(pending?.choices).toHaveLength(20);
  expect(pending?.choices?.map((choice) => Buffer.byteLength(choice))).toEqual(Array.from({ length: 20 }, () => 200));
});

test.each([
  ['of a run that failed', { ...outcome, reason: 'ModelError', pending: question }],
  ['without a call', { ...outcome, pending: { ...question, callId: '' } }],
  ['of a call with an endless id', { ...outcome, pending: { ...question, callId: 'x'.repeat(257) } }],
  ['of an approval without a tool', { ...outcome, pending: { ...question, kind: 'approval' as const } }],
  ['of arguments above 16 KiB', { ...outcome, pending: { ...approval, input: 'x'.repeat(16 * 1024 + 1) } }],
  ['that is not there', outcome],
])('a record %s is not stored', (_what, given) => {
  expect(pendingRecordOf(given)).toBeUndefined();
});
