import type { TranscriptMessage } from '../../protocol/run.js';
import { hasOpenCall, resumeOf } from './resume.js';

const question = { kind: 'question' as const, text: 'Which?', callId: 'c1' };
const approval = { kind: 'approval' as const, text: 'May I?', callId: 'c1', tool: 'shell', input: '{"command":"ls"}' };
const approved = { callId: 'c1', tool: 'shell', input: '{"command":"ls"}' };
const results = (resume: ReturnType<typeof resumeOf>) =>
  resume.opening.map((message) => (message.role === 'tool' ? [message.tool, message.result, message.isError] : []));

test('any text answers a question', () => {
  expect(resumeOf(question, 'approve', 'bw_1234')).toEqual({
    opening: [
      { role: 'tool', callId: 'c1', tool: 'ask_user', result: '{"answer":"user replied: approve"}', isError: false },
    ],
  });
});

test.each([
  ['approve', { opening: [], approved }],
  ['  Approve.\n', { opening: [], approved }],
  ['APPROVE ALWAYS', { opening: [], approved, always: 'shell' }],
  ['approve  always', { opening: [], approved, always: 'shell' }],
])('%j approves', (message, expected) => {
  expect(resumeOf(approval, message, 'bw_1234')).toEqual(expected);
});

test.each([
  ['deny', 'denied by the user'],
  ['Deny: not today', 'denied by the user: not today'],
  ['deny use the other\nfolder', 'denied by the user: use the other\nfolder'],
  ['denying is not my style', 'denied by the user: denying is not my style'],
  ['approve it', 'denied by the user: approve it'],
  ['do not approve', 'denied by the user: do not approve'],
  ['approve\napprove always', 'denied by the user: approve\napprove always'],
  ['What for?', 'denied by the user: What for?'],
])('%j denies, and the text is passed on', (message, error) => {
  const resume = resumeOf(approval, message, 'bw_1234');
  expect(results(resume)).toEqual([['shell', JSON.stringify({ error }), true]]);
  expect(resume.approved).toBeUndefined();
});

test('a run approves nothing', () => {
  const resume = resumeOf(approval, 'approve always', 'run:boss-1');
  expect(resume).not.toHaveProperty('approved');
  expect(resume).not.toHaveProperty('always');
  expect(results(resume)[0]?.[1]).toContain('only a person can approve');
});

const asks: TranscriptMessage = {
  role: 'assistant',
  text: '',
  toolCalls: [
    { id: 'c1', tool: 'ask_user', input: '{}' },
    { id: 'c2', tool: 'shell', input: '{}' },
  ],
};
const done = (callId: string): TranscriptMessage => ({ role: 'tool', callId, tool: 't', result: '{}', isError: false });

test.each([
  ['of the newest assistant message', [asks, done('c2')], true],
  ['that has a result', [asks, done('c1')], false],
  ['of an earlier message', [asks, done('c1'), { role: 'assistant', text: 'x' }], false],
  ['that was cut away', [{ role: 'user', text: 'x' }], false],
  ['of an empty history', [], false],
] as [string, TranscriptMessage[], boolean][])('a call %s: open is %s', (_what, history, expected) => {
  expect(hasOpenCall(history, 'c1')).toBe(expected);
});
