import type { RunEvent, TranscriptMessage } from '../../protocol/run.js';
import { ChatRequest, eventsOf } from './openai.js';
import { RecordingError, recordingOf, replayed } from './recording.js';

const AT = '2026-05-01T12:00:00Z';
const said = (seq: number, message: TranscriptMessage): RunEvent => ({ type: 'message', v: 1, seq, at: AT, message });
const step = (seq: number, finishReason: string): RunEvent => {
  return { type: 'step', seq, at: AT, step: 1, finishReason, inputTokens: 1, outputTokens: 1 };
};
const calls = ['a', 'b'].map((id) => ({ id, tool: 'shell', input: `{"command":"${id}"}` }));
const result = (callId: string, text: string, form?: 'text' | 'content'): TranscriptMessage => {
  return { role: 'tool', callId, tool: 'shell', result: text, isError: false, ...(form === undefined ? {} : { form }) };
};

const EVENTS = [
  said(1, { role: 'user', text: 'Go.' }),
  said(2, { role: 'assistant', text: 'Two at once.', toolCalls: calls }),
  said(3, result('a', '"one"', 'text')),
  said(4, result('b', '{"n":[1,2]}')),
  step(5, 'tool-calls'),
  said(6, { role: 'assistant', text: 'Half of ' }),
  step(7, 'length'),
  said(8, { role: 'user', text: '', frame: { before: 'Go on.', after: '' } }),
  said(9, { role: 'assistant', text: 'it.' }),
  step(10, 'stop'),
];

const user = { role: 'user', content: '<run_context>\nIt is May.\n</run_context>\n\nGo.' };
const called = { role: 'assistant', content: 'Two at once.', tool_calls: [] };
const answer = (id: string, content: string) => ({ role: 'tool', tool_call_id: id, content });
const results = [answer('a', 'one'), answer('b', '{ "n": [1, 2] }')];

function reply(messages: unknown[], more: Record<string, unknown> = {}, anyResultOf: string[] = []) {
  const request = { model: 'recording', messages, tools: [{ function: { name: 'shell' } }], ...more };
  return replayed(ChatRequest.parse(request), recordingOf(EVENTS), { anyResultOf }).result;
}

const failure = (...given: Parameters<typeof reply>) => {
  const made = reply(...given);
  return 'failure' in made ? made.failure : undefined;
};

test('answers come in their order, with their calls and where they were cut', () => {
  const shell = (id: string) => ({ id, tool: 'shell', arguments: `{"command":"${id}"}` });
  expect(reply([user])).toMatchObject({ answer: { text: 'Two at once.', calls: [shell('a'), shell('b')] } });
  expect(reply([user, called, ...results])).toMatchObject({ answer: { text: 'Half of ', calls: [], isCut: true } });
  const half = { role: 'assistant', content: 'Half of ' };
  expect(reply([user, called, ...results, half, { role: 'user', content: 'Go on.' }])).toMatchObject({
    answer: { text: 'it.', calls: [] },
  });
});

test('several calls and an end at the limit are told as vendors tell them', () => {
  const made = reply([user]);
  const cut = reply([user, called, ...results]);
  if ('failure' in made || 'failure' in cut) throw new Error('it failed');
  const events = [...eventsOf({ ...made.answer, id: 'x', created: 1 }, false)].join('');
  expect(events).toContain('"index":0,"id":"a"');
  expect(events).toContain('"index":1,"id":"b"');
  expect([...eventsOf({ ...cut.answer, id: 'x', created: 1 }, false)].join('')).toContain('"finish_reason":"length"');
});

test.each([
  [
    'another text',
    [answer('a', 'two'), results[1]],
    'Step 2: the tool shell answered "two" where the recording has "one".',
  ],
  ['other JSON', [results[0], answer('b', '{"n":[1,3]}')], 'answered "{\\"n\\":[1,3]}" where the recording has'],
  ['no result', [results[0]], 'answered "" where the recording has "{\\"n\\":[1,2]}"'],
])('%s ends the replay, unless any result of the tool will do', (_what, given, said_) => {
  expect(failure([user, called, ...given])).toContain(said_);
  expect(failure([user, called, ...given], {}, ['shell'])).toBeUndefined();
});

test('of a long result the part with the difference is shown', () => {
  const long = `${'x'.repeat(5_000)}A${'y'.repeat(5_000)}`;
  const told = failure([user, called, answer('a', long), results[1]]) ?? '';
  expect(told.length).toBeLessThan(1_000);
});

test('a call that is not possible, another message and one answer too many end it', () => {
  expect(failure([user], { tools: [] })).toContain('calls the tool shell, which the run does not have here');
  expect(failure([user], { tool_choice: 'none' })).toContain('calls the tool shell');
  expect(failure([{ role: 'user', content: 'Stop.' }])).toContain('the message of the run is not the one');
  const after = [user, called, ...results, { role: 'assistant', content: 'a' }, { role: 'assistant', content: 'b' }];
  expect(failure(after)).toContain('the recording ends after 3 answers');
});

test.each([
  ['a gap', EVENTS.filter(({ seq }) => seq !== 4), 'parts of the transcript are missing'],
  ['an end that is missing does not show, but no answer does', EVENTS.slice(0, 1), 'the model said nothing'],
])('%s', (_what, events, said_) => {
  expect(() => recordingOf(events)).toThrow(RecordingError);
  expect(() => recordingOf(events)).toThrow(said_);
});
