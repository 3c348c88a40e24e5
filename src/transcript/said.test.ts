import type { AgentRun } from '../api/v1alpha1/agent-run.js';
import { assistantMessage, outputEvent, toolEvent, userMessage } from '../../test/builders/run-events.js';
import { makeFinishedRun } from '../../test/builders/archive-entries.js';
import { runMessages } from '../services/sessions/sessions.js';
import { agentTexts, messageCount } from './said.js';

type Status = Partial<NonNullable<AgentRun['status']>>;

const INPUT = { encoding: 'gzip' as const, bytes: 5, sha256: 'ab' };
const DATA = 'H4sIAAAAAAAAA8tIzcnJBwCGphA2BQAAAA==';

function run(status: Status, spec: AgentRun['spec'] = { agent: 'greeter', message: 'hello' }): AgentRun {
  const finished = makeFinishedRun('greeter-1', { status });
  return { ...finished, spec };
}

test('texts of the agent are messages with a text: no calls, no results, not what the person said', () => {
  const call = { role: 'assistant' as const, text: '', toolCalls: [{ id: 'c1', name: 'shell', input: '{}' }] };
  const events = [
    userMessage(1, 'hello'),
    assistantMessage(2, 'I look.'),
    { ...assistantMessage(3, ''), message: call },
    toolEvent(4),
    assistantMessage(5, 'Done.'),
    outputEvent(6, 'Done.'),
  ];
  expect(agentTexts(events as Parameters<typeof agentTexts>[0])).toBe(2);
});

const written = (messages: number | undefined, state: 'full' | 'truncated' | 'archived' = 'full', chunks = 1) => ({
  transcript: { state, chunks, bytes: 10, ...(messages === undefined ? {} : { messages }) },
});

describe('the number of messages of a run', () => {
  test.each<[string, Status, number | undefined]>([
    ['is what was counted', written(4), 4],
    ['is what was counted of what is left', written(3, 'truncated'), 3],
    ['has the output where the agent said nothing', written(1), 2],
    ['is the input alone where there is no output either', { ...written(1), output: '' }, 1],
    ['goes on to count when the transcript is in the archive', written(4, 'archived', 0), 4],
    ['is not known of a transcript that was not counted', written(undefined), undefined],
    ['is not known of one that was not counted and is in the archive', written(undefined, 'archived', 0), undefined],
    ['is not known while the run works', { ...written(4), phase: 'running' }, undefined],
  ])('%s', (_what, status, count) => {
    expect(messageCount(run(status))).toBe(count);
  });

  const expired = { transcript: { state: 'expired' as const, chunks: 0, bytes: 0, messages: 7 } };
  const none = { transcript: { state: 'full' as const, chunks: 0, bytes: 0, messages: 1 } };
  test.each<[string, Status, AgentRun['spec'], number]>([
    ['a transcript that has expired', expired, { agent: 'greeter', message: 'hello' }, 2],
    ['a transcript and an input that have expired', expired, { agent: 'greeter', input: INPUT }, 1],
    ['a transcript that has expired, no output', { ...expired, output: '' }, { agent: 'greeter', input: INPUT }, 0],
    ['no chunk', none, { agent: 'greeter', input: { ...INPUT, data: DATA } }, 2],
    ['no transcript', { transcript: undefined }, { agent: 'greeter', message: 'hello' }, 2],
    ['no transcript and no output', { transcript: undefined, output: '' }, { agent: 'greeter', message: 'hello' }, 1],
  ])('is that of input and output for %s, as they are shown', (_what, status, spec, count) => {
    const finished = run(status, spec);
    expect(messageCount(finished)).toBe(count);
    expect(runMessages(finished, [])).toHaveLength(count);
  });
});
