import type { ModelMessage } from 'ai';
import * as fc from '../../test/builders/properties.js';
import { TranscriptMessage } from '../protocol/run.js';
import { messagesOfStep, toModelMessages } from './conversation.js';

const ME = { provider: 'anthropic', model: 'claude' };
const user = (text: string): TranscriptMessage => ({ role: 'user', text });
const asked: TranscriptMessage = {
  role: 'assistant',
  text: 'Let me see.',
  toolCalls: [
    { id: 'a', tool: 'shell', input: '{"command":"ls"}' },
    { id: 'b', tool: 'shell', input: 'cut {' },
  ],
};
const answered: TranscriptMessage = {
  role: 'tool',
  callId: 'b',
  tool: 'shell',
  result: '{"exitCode":0}',
  isError: false,
};

test('an open call gets an answer, and results follow the order of the calls', () => {
  expect(toModelMessages([user('go'), asked, answered, user('and?')], ME)).toEqual([
    { role: 'user', content: 'go' },
    {
      role: 'assistant',
      content: [
        { type: 'text', text: 'Let me see.' },
        { type: 'tool-call', toolCallId: 'a', toolName: 'shell', input: { command: 'ls' } },
        { type: 'tool-call', toolCallId: 'b', toolName: 'shell', input: {} },
      ],
    },
    {
      role: 'tool',
      content: [
        {
          type: 'tool-result',
          toolCallId: 'a',
          toolName: 'shell',
          output: { type: 'error-json', value: { error: 'The run ended before this tool answered.' } },
        },
        { type: 'tool-result', toolCallId: 'b', toolName: 'shell', output: { type: 'json', value: { exitCode: 0 } } },
      ],
    },
    { role: 'user', content: 'and?' },
  ]);
});

test('a result without a call and an empty message are left out', () => {
  expect(toModelMessages([answered, { role: 'assistant', text: '' }, user('hi')], ME)).toEqual([
    { role: 'user', content: 'hi' },
  ]);
});

/** What is stored, as it comes back from the cluster. */
const stored = (response: readonly ModelMessage[], open?: string) =>
  messagesOfStep(response, ME, open).map((message) => TranscriptMessage.parse(JSON.parse(JSON.stringify(message))));
const call = (id: string, input: unknown, options?: object): object => ({
  type: 'tool-call',
  toolCallId: id,
  toolName: 'shell',
  input,
  ...(options === undefined ? {} : { providerOptions: options }),
});
const result = (id: string, output: unknown): object => ({
  type: 'tool-result',
  toolCallId: id,
  toolName: 'shell',
  output,
});
const signed = { anthropic: { signature: 'EqQBCgIYAhIM' } };

const TURNS: [string, object[], object[]][] = [
  ['a text', [{ type: 'text', text: 'Hi.' }], []],
  [
    'two texts',
    [
      { type: 'text', text: 'One.' },
      { type: 'text', text: 'Two.' },
    ],
    [],
  ],
  ['a call before the text', [call('1', {}), { type: 'text', text: 'So.' }], [result('1', { type: 'json', value: 1 })]],
  [
    'signed thoughts',
    [
      { type: 'reasoning', text: 'Hm.', providerOptions: signed },
      { type: 'text', text: 'Hi.' },
    ],
    [],
  ],
  [
    'hidden thoughts',
    [
      { type: 'reasoning', text: '', providerOptions: { anthropic: { redactedData: 'ENC' } } },
      call('1', { command: 'ls' }),
    ],
    [result('1', { type: 'text', value: 'a\nb' })],
  ],
  [
    'ids and encrypted thoughts',
    [
      {
        type: 'reasoning',
        text: 'Plan.',
        providerOptions: { openai: { itemId: 'rs_1', reasoningEncryptedContent: 'ENC' } },
      },
      { type: 'text', text: 'Go.', providerOptions: { openai: { itemId: 'msg_1' } } },
      call('1', { z: 1, a: [2, { b: null }] }, { openai: { itemId: 'fc_1' } }),
    ],
    [result('1', { type: 'error-text', value: 'no such file' })],
  ],
  [
    'a signature on one of two calls, with the same id',
    [call('1', {}, { google: { thoughtSignature: 'c2ln' } }), call('1', { x: 1 })],
    [result('1', { type: 'error-json', value: { error: 'x' } }), result('1', { type: 'json', value: { ok: true } })],
  ],
  ['parts as a result', [call('1', {})], [result('1', { type: 'content', value: [{ type: 'text', text: 'seen' }] })]],
  [
    'what is not known yet',
    [
      { type: 'custom', kind: 'x.y', providerOptions: { x: { y: 1 } } },
      { type: 'text', text: 'Hi.' },
    ],
    [],
  ],
];

test.each(TURNS)('%s goes back to the model as it came', (_what, content, results) => {
  const response = [
    { role: 'assistant', content },
    ...(results.length === 0 ? [] : [{ role: 'tool', content: results }]),
  ] as ModelMessage[];
  expect(JSON.stringify(toModelMessages(stored(response), ME))).toBe(JSON.stringify(response));
});

test.each([
  { provider: 'anthropic', model: 'another' },
  { provider: 'openai', model: 'claude' },
])('another model gets what was said and done, and nothing of the provider', (other) => {
  for (const [, content, results] of TURNS) {
    const response = [
      { role: 'assistant', content },
      { role: 'tool', content: results },
    ] as ModelMessage[];
    const sent = JSON.stringify(toModelMessages(stored(response), other));
    expect(sent).not.toMatch(/providerOptions|reasoning/);
  }
});

test('an answer that says nothing but what its text says is stored as that', () => {
  const content = [{ type: 'text', text: 'Hi.' }, call('1', {})];
  const [message] = stored([{ role: 'assistant', content } as ModelMessage]);
  expect(message).toEqual({ role: 'assistant', text: 'Hi.', toolCalls: [{ id: '1', tool: 'shell', input: '{}' }] });
});

test('thoughts alone are no message, and the open call has no result', () => {
  const thoughts = { role: 'assistant', content: [{ type: 'reasoning', text: 'Hm.' }] } as ModelMessage;
  expect(stored([thoughts])).toEqual([]);
  const turn = [
    { role: 'assistant', content: [call('1', {}), call('2', {})] },
    { role: 'tool', content: [result('1', { type: 'json', value: 1 }), result('2', { type: 'json', value: {} })] },
  ] as ModelMessage[];
  expect(stored(turn, '2').map((message) => (message.role === 'tool' ? message.callId : message.role))).toEqual([
    'assistant',
    '1',
  ]);
});

test('any JSON that a tool gave comes back as it was', () => {
  fc.assert(
    fc.property(fc.jsonValue(), fc.jsonValue(), (input, value) => {
      const object = { input };
      const response = [
        { role: 'assistant', content: [call('1', object)] },
        { role: 'tool', content: [result('1', { type: 'json', value: { value } })] },
      ] as ModelMessage[];
      expect(JSON.stringify(toModelMessages(stored(response), ME))).toBe(JSON.stringify(response));
    }),
  );
});
