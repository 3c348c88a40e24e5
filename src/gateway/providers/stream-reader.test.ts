/** Answers that are put together from their events, as their providers would have given them whole. */
import { chatCompletions } from './chat-completions.js';
import { anthropicMessages } from './anthropic.js';
import { googleGenerate } from './google.js';
import { openaiResponses } from './openai-responses.js';
import type { Dialect, StreamEvent } from './dialect.js';

function read(dialect: Dialect, events: readonly StreamEvent[]) {
  const reader = dialect.reader();
  for (const event of events) reader.read(event);
  reader.ended();
  return reader;
}

test('Anthropic: thoughts with their signature, a text, a call whose arguments come in pieces', () => {
  const delta = (index: number, more: object) => ({ type: 'content_block_delta', index, delta: more });
  const reader = read(anthropicMessages, [
    { type: 'message_start', message: { id: 'm', content: [], usage: { input_tokens: 9, output_tokens: 1 } } },
    { type: 'ping' },
    { type: 'content_block_start', index: 0, content_block: { type: 'thinking', thinking: '', signature: '' } },
    delta(0, { type: 'thinking_delta', thinking: 'Let me ' }),
    delta(0, { type: 'thinking_delta', thinking: 'see.' }),
    delta(0, { type: 'signature_delta', signature: 'c2ln' }),
    { type: 'content_block_start', index: 1, content_block: { type: 'tool_use', id: 't', name: 'look', input: {} } },
    delta(1, { type: 'input_json_delta', partial_json: '{"at":' }),
    delta(1, { type: 'input_json_delta', partial_json: '"x"}' }),
    { type: 'message_delta', delta: { stop_reason: 'tool_use' }, usage: { output_tokens: 30 } },
    { type: 'message_stop' },
  ]);
  expect(reader.answer()).toEqual({
    id: 'm',
    content: [
      { type: 'thinking', thinking: 'Let me see.', signature: 'c2ln' },
      { type: 'tool_use', id: 't', name: 'look', input: { at: 'x' } },
    ],
    stop_reason: 'tool_use',
    usage: { input_tokens: 9, output_tokens: 30 },
  });
  expect(reader).toMatchObject({ isComplete: true, counts: { inputTokens: 9, outputTokens: 30 } });
});

test('chat completions: calls in pieces, thoughts, and an end without [DONE]', () => {
  const chunk = (delta: object, more: object = {}) => ({ id: 'c', choices: [{ index: 0, delta, ...more }] });
  const call = (index: number, more: object, said: object) => ({ index, ...more, function: said });
  const reader = read(chatCompletions, [
    chunk({ role: 'assistant', content: '' }),
    chunk({ reasoning_content: 'Let me ' }),
    chunk({ reasoning_content: 'see.' }),
    chunk({ tool_calls: [call(0, { id: 'a', type: 'function' }, { name: 'look', arguments: '' })] }),
    chunk({ tool_calls: [call(0, {}, { arguments: '{"at":1}' })] }),
    chunk({ tool_calls: [call(1, { id: 'b', type: 'function' }, { name: 'look', arguments: '{}' })] }),
    chunk({}, { finish_reason: 'tool_calls' }),
    { id: 'c', choices: [], usage: { prompt_tokens: 5, completion_tokens: 6 } },
  ]);
  expect(reader.isComplete).toBe(true);
  expect(reader.answer()).toMatchObject({
    id: 'c',
    object: 'chat.completion',
    choices: [
      {
        finish_reason: 'tool_calls',
        message: {
          reasoning_content: 'Let me see.',
          tool_calls: [
            { id: 'a', type: 'function', function: { name: 'look', arguments: '{"at":1}' } },
            { id: 'b', type: 'function', function: { name: 'look', arguments: '{}' } },
          ],
        },
      },
    ],
    usage: { prompt_tokens: 5, completion_tokens: 6 },
  });
});

test("Mistral's parts become one list", () => {
  const chunk = (content: unknown) => ({ choices: [{ index: 0, delta: { content } }] });
  const thinking = (text: string) => [{ type: 'thinking', thinking: [{ type: 'text', text }] }];
  const reader = read(chatCompletions, [chunk(thinking('Let me ')), chunk(thinking('see.')), chunk('So'), chunk('.')]);
  const [choice] = reader.answer()['choices'] as { message: { content: unknown } }[];
  expect(choice?.message.content).toEqual([...thinking('Let me see.'), { type: 'text', text: 'So.' }]);
});

test('Google: pieces of a text are one, thoughts and signed parts stay apart', () => {
  const event = (parts: object[], more: object = {}) => ({
    candidates: [{ content: { role: 'model', parts }, ...more }],
  });
  const reader = read(googleGenerate, [
    event([{ text: 'Let me see.', thought: true }]),
    event([{ text: 'It ' }]),
    event([{ text: 'is.' }, { functionCall: { name: 'look', args: {} }, thoughtSignature: 'c2ln' }]),
    { ...event([], { finishReason: 'STOP' }), usageMetadata: { promptTokenCount: 4, candidatesTokenCount: 5 } },
  ]);
  expect(reader).toMatchObject({ isComplete: true, counts: { inputTokens: 4, outputTokens: 5 } });
  const [candidate] = reader.answer()['candidates'] as { content: unknown; finishReason: string }[];
  expect(candidate).toEqual({
    content: {
      role: 'model',
      parts: [
        { text: 'Let me see.', thought: true },
        { text: 'It is.' },
        { functionCall: { name: 'look', args: {} }, thoughtSignature: 'c2ln' },
      ],
    },
    finishReason: 'STOP',
  });
});

const chunkOf = (delta: object) => ({ choices: [{ index: 0, delta }] });
const partsOf = (parts: object[]) => ({ candidates: [{ content: { role: 'model', parts } }] });
const blockOf = (delta: object) => ({ type: 'content_block_delta', index: 0, delta });

test.each<[string, Dialect, StreamEvent[]]>([
  [
    'Anthropic',
    anthropicMessages,
    [
      { type: 'content_block_start', index: 0, content_block: { type: 'text', text: '' } },
      blockOf({ type: 'thinking_delta', thinking: 'Hm.' }),
      blockOf({ type: 'text_delta', text: 'It ' }),
      blockOf({ type: 'text_delta', text: 'is.' }),
      blockOf({ type: 'input_json_delta', partial_json: '{}' }),
    ],
  ],
  [
    'chat completions',
    chatCompletions,
    [chunkOf({ reasoning_content: 'Hm.' }), chunkOf({ content: 'It ' }), chunkOf({ content: 'is.' })],
  ],
  [
    'Mistral',
    chatCompletions,
    [
      chunkOf({ content: [{ type: 'thinking', thinking: [{ type: 'text', text: 'Hm.' }] }] }),
      chunkOf({ content: [{ type: 'text', text: 'It ' }] }),
      chunkOf({ content: 'is.' }),
    ],
  ],
  ['Google', googleGenerate, [partsOf([{ text: 'Hm.', thought: true }]), partsOf([{ text: 'It ' }, { text: 'is.' }])]],
  [
    'OpenAI',
    openaiResponses,
    [
      { type: 'response.reasoning_summary_text.delta', delta: 'Hm.' },
      { type: 'response.output_text.delta', delta: 'It ' },
      { type: 'response.output_text.delta', delta: 'is.' },
      { type: 'response.function_call_arguments.delta', delta: '{}' },
    ],
  ],
])('%s: what the model says to people is known while it comes, and nothing else of it', (_name, dialect, events) => {
  expect(read(dialect, events).said).toBe('It is.');
});

test('of a long text the beginning is shown while it comes', () => {
  const reader = read(
    chatCompletions,
    Array.from({ length: 20 }, () => chunkOf({ content: 'x'.repeat(10_000) })),
  );
  expect([reader.said.length, reader.characters > 200_000]).toEqual([65_536, true]);
});

test.each([
  [{ type: 'response.failed', response: { error: { code: 'server_error', message: 'Oops' } } }, true],
  [{ type: 'response.failed', response: { error: { code: 'invalid_prompt', message: 'Oops' } } }, false],
  [{ type: 'error', code: 'rate_limit_exceeded', message: 'Oops' }, true],
])('OpenAI says with %j that it cannot go on; worth another try: %p', (event, again) => {
  const reader = read(openaiResponses, [{ type: 'response.created', response: {} }, event]);
  expect(reader).toMatchObject({ isComplete: false, hasBegun: true, failure: { message: 'Oops', again } });
});
