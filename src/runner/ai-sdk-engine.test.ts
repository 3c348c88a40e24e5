/** The agent loop through the AI SDK against a small OpenAI-compatible server: each case is one that a library gets wrong. */
import { z } from 'zod';
import { startOpenAiServer } from '../../test/builders/openai-server.js';
import type { ChatAnswer, OpenAiServer } from '../../test/builders/openai-server.js';
import type { TranscriptMessage } from '../protocol/run.js';
import { outputCheckOf } from '../run/output-schema.js';
import { createAiSdkEngine } from './ai-sdk-engine.js';
import type { EngineInput, EngineOutcome, EngineTool } from './engine.js';

let server: OpenAiServer | undefined;
afterEach(() => server?.close());

const echo: EngineTool = {
  name: 'echo',
  family: 'test',
  description: 'Says it again.',
  input: z.object({ text: z.string() }),
  execute: (input) => Promise.resolve({ isError: input['text'] === 'bad', result: { said: input['text'] } }),
};

type Told = { type: string; [field: string]: unknown };

interface Ran {
  outcome: EngineOutcome;
  told: Told[];
  requests: OpenAiServer['requests'];
}

async function run(
  answers: ChatAnswer[],
  input: Partial<EngineInput> = {},
  abort: AbortController = new AbortController(),
  looking?: (told: readonly Told[]) => EngineTool,
): Promise<Ran> {
  server = await startOpenAiServer(answers);
  const told: Told[] = [];
  const tell = (type: string) => (record: object) => {
    told.push({ type, ...record });
    return Promise.resolve();
  };
  const outcome = await createAiSdkEngine(globalThis.fetch).run(
    {
      provider: 'boxwright',
      model: 'test-model',
      baseUrl: `${server.url}/gateway/boxwright/v1`,
      instructions: 'Be kind.',
      messages: [{ role: 'user', text: 'Hello' }],
      tools: looking === undefined ? [echo] : [looking(told)],
      stepLimit: 10,
      ...input,
    },
    {
      onTool: tell('tool'),
      onMessage: tell('message'),
      onStep: tell('step'),
      onWarning: (text) => tell('warning')({ text }),
      onCompaction: tell('compaction'),
    },
    abort.signal,
  );
  return { outcome, told, requests: server.requests };
}

const ask = (tool: string, args: object | string): ChatAnswer => ({
  calls: [{ tool, arguments: typeof args === 'string' ? args : JSON.stringify(args) }],
});
const ofType = (told: Told[], type: string) => told.filter((entry) => entry.type === type);

test('a plain answer is one step with its tokens', async () => {
  const { outcome, told, requests } = await run([{ text: 'Hi.' }], { temperature: 0.25 });
  expect(outcome).toEqual({ reason: 'Completed', message: '', output: 'Hi.', steps: 1 });
  expect(told).toEqual([
    { type: 'message', role: 'assistant', text: 'Hi.' },
    { type: 'step', step: 1, finishReason: 'stop', inputTokens: 10, outputTokens: 5 },
  ]);
  expect(requests[0]?.path).toBe('/gateway/boxwright/v1/chat/completions');
  expect(requests[0]?.body).toMatchObject({ model: 'test-model', temperature: 0.25 });
  expect(requests[0]?.body.messages).toEqual([
    { role: 'system', content: 'Be kind.' },
    { role: 'user', content: 'Hello' },
  ]);
});

test('near the context window a summary takes the place of the older messages, and takes a step', async () => {
  const long = 'x'.repeat(30_000);
  const messages: TranscriptMessage[] = [
    { role: 'user', text: 'The task.' },
    { role: 'assistant', text: long },
    { role: 'user', text: 'Go on.' },
  ];
  const { outcome, told, requests } = await run([{ text: 'I did x.' }, { text: 'Done.' }], {
    messages,
    contextWindow: 8000,
  });
  expect(outcome).toEqual({ reason: 'Completed', message: '', output: 'Done.', steps: 2 });
  const text = 'The task.\n\n[The conversation since then, summarised]\nI did x.';
  expect(told).toEqual([
    { type: 'step', step: 1, finishReason: 'compaction', inputTokens: 10, outputTokens: 5 },
    { type: 'compaction', text, kept: 1 },
    { type: 'message', role: 'assistant', text: 'Done.' },
    { type: 'step', step: 2, finishReason: 'stop', inputTokens: 10, outputTokens: 5 },
  ]);
  // The conversation as it stands, with a request behind it.
  expect(requests[0]?.body.tools).toEqual(requests[1]?.body.tools);
  expect(requests[0]?.body.messages.map(({ role }) => role)).toEqual(['system', 'user', 'assistant', 'user', 'user']);
  expect(requests[0]?.body.messages.at(-1)?.content).toContain('Summarise it in plain text');
  expect(requests[1]?.body.messages).toEqual([
    { role: 'system', content: 'Be kind.' },
    { role: 'user', content: text },
    { role: 'user', content: 'Go on.' },
  ]);
});

test('what is found while the loop works is told from the next step on, behind the other tools', async () => {
  const found: string[] = [];
  const later = (name: string): EngineTool => ({ ...echo, name, isOnDemand: true });
  const search: EngineTool = {
    ...echo,
    name: 'search',
    execute: ({ text }) => {
      found.push(String(text));
      return Promise.resolve({ isError: false, result: {} });
    },
  };
  const answers = [
    ask('a', { text: 'too early' }),
    ask('search', { text: 'c' }),
    ask('search', { text: 'a' }),
    ask('a', { text: 'now' }),
    { text: 'Done.' },
  ];
  const tools = [echo, search, later('a'), later('b'), later('c')];
  const { told, requests } = await run(answers, { tools, found: () => found });
  const names = requests.map(({ body }) => body.tools?.map((known) => known.function.name).join(' '));
  const begun = 'echo search';
  expect(names).toEqual([begun, begun, `${begun} c`, `${begun} c a`, `${begun} c a`]);
  expect(ofType(told, 'tool').map(({ tool, isError }) => [tool, isError])).toEqual([
    ['a', true],
    ['search', false],
    ['search', false],
    ['a', false],
  ]);
});

test('a conversation is summarised as early as the agent says, known window or not', async () => {
  const { outcome, told } = await run([{ text: 'I did x.' }, { text: 'Done.' }], {
    messages: [
      { role: 'user', text: 'The task.' },
      { role: 'assistant', text: 'x'.repeat(30_000) },
      { role: 'user', text: 'Go on.' },
    ],
    compactAt: 6000,
  });
  expect(outcome).toMatchObject({ reason: 'Completed', output: 'Done.', steps: 2 });
  expect(told.map(({ type }) => type)).toEqual(['step', 'compaction', 'message', 'step']);
});

const tooLong: ChatAnswer = {
  status: 400,
  body: JSON.stringify({
    error: {
      type: 'ModelError',
      message:
        "local answered HTTP 400: This model's maximum context length is 8000 tokens. However, your messages resulted in 9000 tokens.",
    },
  }),
};
const said = (length: number): TranscriptMessage[] => [
  { role: 'user', text: 'The task.' },
  { role: 'assistant', text: 'x'.repeat(length) },
  { role: 'user', text: 'Go on.' },
];

test('a conversation that a model refuses as too long is summarised and sent once more', async () => {
  const { outcome, told, requests } = await run([tooLong, { text: 'I did x.' }, { text: 'Done.' }], {
    messages: said(30_000),
  });
  expect(outcome).toEqual({ reason: 'Completed', message: '', output: 'Done.', steps: 2 });
  expect(told.map(({ type }) => type)).toEqual(['step', 'compaction', 'warning', 'message', 'step']);
  expect(requests[2]?.body.messages.slice(1)).toEqual([
    { role: 'user', content: 'The task.\n\n[The conversation since then, summarised]\nI did x.' },
    { role: 'user', content: 'Go on.' },
  ]);
});

test('a model that calls a tool instead of summarising is asked with a prompt of its own', async () => {
  const { outcome, requests } = await run([ask('echo', { text: 'x' }), { text: 'I did x.' }, { text: 'Done.' }], {
    messages: said(30_000),
    contextWindow: 8000,
  });
  expect(outcome).toMatchObject({ reason: 'Completed', output: 'Done.', steps: 3 });
  expect(requests[1]?.body.tools).toBeUndefined();
  expect(JSON.stringify(requests[1]?.body.messages)).toContain('Summarise the conversation below');
});

test('old results go first: that takes no call of the model', async () => {
  const big = 'y'.repeat(9_000);
  const reads = { ...echo, execute: () => Promise.resolve({ isError: false, result: { big } }) };
  const steps = Array.from({ length: 3 }, (_, n) => ask('echo', { text: `${n}` }));
  const { outcome, told, requests } = await run([...steps, tooLong, { text: 'Done.' }], { tools: [reads] });
  expect(outcome).toMatchObject({ reason: 'Completed', output: 'Done.', steps: 4 });
  expect(requests).toHaveLength(5);
  const results = (index: number) =>
    requests[index]?.body.messages.flatMap(({ role, content }) =>
      role === 'tool' ? [String(content).length > 500] : [],
    );
  expect(results(3)).toEqual([true, true, true]);
  expect(results(4)).toEqual([false, false, false]);
  expect(ofType(told, 'compaction')).toEqual([{ type: 'compaction', text: 'Hello', kept: 6, cleared: 3 }]);
});

test('a model that refuses again and again ends the run with its words', async () => {
  const { outcome, requests } = await run([tooLong, tooLong, tooLong, tooLong, tooLong, tooLong, tooLong, tooLong], {
    messages: said(30_000),
  });
  expect(outcome).toMatchObject({ reason: 'ModelError', message: expect.stringContaining('maximum context length') });
  expect(requests.length).toBeLessThan(8);
});

test('in the last step no call is left to summarise: what does not fit is left out', async () => {
  const { outcome, requests } = await run([tooLong, { text: 'Done.' }], { messages: said(30_000), stepLimit: 1 });
  expect(outcome).toMatchObject({ reason: 'Completed', output: 'Done.', steps: 1 });
  expect(JSON.stringify(requests[1]?.body.messages)).toContain('It could not be summarised');
});

test('without a known window, or with a last step only, nothing is summarised', async () => {
  const messages: TranscriptMessage[] = [
    { role: 'user', text: 'The task.' },
    { role: 'assistant', text: 'x'.repeat(30_000) },
    { role: 'user', text: 'Go on.' },
  ];
  expect((await run([{ text: 'Done.' }], { messages })).requests).toHaveLength(1);
  await server?.close();
  expect((await run([{ text: 'Done.' }], { messages, contextWindow: 8000, stepLimit: 1 })).requests).toHaveLength(1);
});

test('a call that waits for a person ends the loop; it and the calls after it have not happened', async () => {
  const waits: EngineTool = {
    ...echo,
    name: 'ask',
    execute: () => Promise.resolve({ isError: false, result: {}, pause: { kind: 'question', text: 'Which?' } }),
  };
  const { outcome, told, requests } = await run(
    [
      {
        text: 'One moment.',
        calls: [
          { tool: 'echo', arguments: '{"text":"first"}', id: 'a' },
          { tool: 'ask', arguments: '{"text":"x"}', id: 'b' },
          { tool: 'echo', arguments: '{"text":"last"}', id: 'c' },
        ],
      },
    ],
    { tools: [echo, waits] },
  );
  expect(requests).toHaveLength(1);
  expect(outcome).toEqual({
    reason: 'Completed',
    message: '',
    output: 'Which?',
    steps: 1,
    open: { callId: 'b', tool: 'ask', input: { text: 'x' }, pause: { kind: 'question', text: 'Which?' } },
  });
  expect(ofType(told, 'tool').map(({ tool, isError, result }) => ({ tool, isError, result }))).toEqual([
    { tool: 'echo', isError: false, result: { said: 'first' } },
    { tool: 'echo', isError: true, result: { error: expect.stringContaining('Not executed') } },
  ]);
  expect(ofType(told, 'message').map(({ role, callId }) => [role, callId])).toEqual([
    ['assistant', undefined],
    ['tool', 'a'],
    ['tool', 'c'],
  ]);
});

test('a tool call is recorded, and the model sees its result', async () => {
  const { outcome, told, requests } = await run([ask('echo', { text: 'x' }), { text: 'Done.' }]);
  expect(outcome).toMatchObject({ reason: 'Completed', output: 'Done.', steps: 2 });
  expect(told.slice(0, 4)).toEqual([
    {
      type: 'message',
      role: 'assistant',
      text: '',
      toolCalls: [{ id: 'call_1_0', tool: 'echo', input: '{"text":"x"}' }],
    },
    {
      type: 'tool',
      step: 1,
      tool: 'echo',
      input: { text: 'x' },
      result: { said: 'x' },
      isError: false,
      durationMs: expect.any(Number),
    },
    { type: 'message', role: 'tool', callId: 'call_1_0', tool: 'echo', result: '{"said":"x"}', isError: false },
    { type: 'step', step: 1, finishReason: 'tool-calls', inputTokens: 10, outputTokens: 5 },
  ]);
  expect(requests[1]?.body.messages.at(-1)).toEqual({
    role: 'tool',
    tool_call_id: 'call_1_0',
    content: '{"said":"x"}',
  });
});

test('a tool that answers with an error is recorded as one, and the loop goes on', async () => {
  const { outcome, told } = await run([ask('echo', { text: 'bad' }), { text: 'I see.' }]);
  expect(outcome.reason).toBe('Completed');
  expect(ofType(told, 'tool')).toMatchObject([{ isError: true, result: { said: 'bad' } }]);
});

test('a tool that throws is an error with its message, and the loop goes on', async () => {
  const broken = { ...echo, execute: () => Promise.reject(new Error('boom')) };
  const { outcome, told } = await run([ask('echo', { text: 'x' }), { text: 'Sorry.' }], { tools: [broken] });
  expect(outcome.output).toBe('Sorry.');
  expect(ofType(told, 'tool')).toMatchObject([{ isError: true, result: { error: 'boom' }, step: 1 }]);
});

test.each([
  ['an unknown tool', ask('launch', { text: 'x' }), 'launch', { text: 'x' }],
  ['an input that is not JSON', ask('echo', '{"text": '), 'echo', '{"text": '],
])('%s is recorded as an error of duration 0, and the loop goes on', async (_name, answer, tool, input) => {
  const { outcome, told } = await run([answer, { text: 'Sorry.' }]);
  expect(outcome).toMatchObject({ reason: 'Completed', output: 'Sorry.', steps: 2 });
  expect(ofType(told, 'tool')).toEqual([
    { type: 'tool', step: 1, tool, input, isError: true, durationMs: 0, result: { error: expect.any(String) } },
  ]);
  expect(ofType(told, 'message').filter((message) => message['role'] === 'tool')).toMatchObject([{ isError: true }]);
});

test('an input that does not fit is told in one sentence, and nothing is executed', async () => {
  const execute = () => Promise.reject(new Error('executed'));
  const { told, requests } = await run([ask('echo', { text: 7 }), { text: 'Sorry.' }], {
    tools: [{ ...echo, execute }],
  });
  const error = 'The input does not fit echo: text is 7, and must be a string.';
  expect(ofType(told, 'tool')).toMatchObject([{ step: 1, input: { text: 7 }, isError: true, result: { error } }]);
  expect(requests[1]?.body.messages.at(-1)).toMatchObject({ role: 'tool', content: JSON.stringify({ error }) });
});

test('a number out of its bounds is moved to the bound, and the model is told', async () => {
  const input = z.object({ seconds: z.int().min(1).max(600) });
  const wait: EngineTool = { ...echo, input, execute: (given) => Promise.resolve({ isError: false, result: given }) };
  const words: EngineTool = {
    ...wait,
    name: 'words',
    execute: () => Promise.resolve({ isError: false, result: {}, text: 'Waited.' }),
  };
  const { told, requests } = await run(
    [ask('echo', { seconds: 900 }), ask('words', { seconds: 0 }), { text: 'Done.' }],
    { tools: [wait, words] },
  );
  const note = 'seconds was 900; at most 600 is allowed, so 600 was used';
  expect(ofType(told, 'tool')[0]).toMatchObject({ input: { seconds: 900 }, result: { seconds: 600, note } });
  expect(requests[2]?.body.messages.at(-1)?.content).toBe(
    'Waited.\n[seconds was 0; at least 1 is allowed, so 1 was used]',
  );
});

test('calls of one answer with the same id are calls of their own, each with its result', async () => {
  const calls = ['a', 'b', 'c'].map((text) => ({ id: 'same', tool: 'echo', arguments: JSON.stringify({ text }) }));
  const { told, requests } = await run([{ calls }, { text: 'Done.' }]);
  expect(ofType(told, 'tool').map(({ input, result }) => [input, result])).toEqual(
    ['a', 'b', 'c'].map((text) => [{ text }, { said: text }]),
  );
  const sent = requests[1]?.body.messages.slice(-4) as unknown as [
    { tool_calls: { id: string; function: { arguments: string } }[] },
    ...{ tool_call_id: string; content: string }[],
  ];
  const [answer, ...results] = sent;
  expect(answer.tool_calls.map(({ id, function: { arguments: json } }) => [id, json])).toEqual([
    ['same', '{"text":"a"}'],
    ['same_2', '{"text":"b"}'],
    ['same_3', '{"text":"c"}'],
  ]);
  expect(results.map(({ tool_call_id: id, content }) => [id, content])).toEqual([
    ['same', '{"said":"a"}'],
    ['same_2', '{"said":"b"}'],
    ['same_3', '{"said":"c"}'],
  ]);
});

test('an answer is told before its calls are made, and each result when it is there', async () => {
  const before: string[][] = [];
  const { told } = await run(
    [
      { text: 'Two.', calls: ['a', 'b'].map((text) => ({ tool: 'look', arguments: JSON.stringify({ text }) })) },
      { text: 'x' },
    ],
    {},
    undefined,
    (told) => ({
      ...echo,
      name: 'look',
      execute: (input) => {
        before.push(told.map(({ type, role }) => JSON.stringify(role ?? type)));
        return echo.execute(input, new AbortController().signal);
      },
    }),
  );
  expect(before).toEqual([['"assistant"'], ['"assistant"', '"tool"', '"tool"']]);
  expect(ofType(told, 'message').map(({ role }) => role)).toEqual(['assistant', 'tool', 'tool', 'assistant']);
});

test('several calls of one step run one after another', async () => {
  const order: string[] = [];
  const slow: EngineTool = {
    ...echo,
    execute: async (input) => {
      order.push(`begin ${String(input['text'])}`);
      await new Promise((resolve) => setImmediate(resolve));
      order.push(`end ${String(input['text'])}`);
      return { isError: false, result: {} };
    },
  };
  const calls = ['a', 'b'].map((text) => ({ tool: 'echo', arguments: JSON.stringify({ text }) }));
  await run([{ calls }, { text: 'Done.' }], { tools: [slow] });
  expect(order).toEqual(['begin a', 'end a', 'begin b', 'end b']);
});

test('a model that uses the same call id in every step loses no record', async () => {
  const same: ChatAnswer = { calls: [{ id: 'call_0', tool: 'nothing', arguments: '{}' }] };
  const good: ChatAnswer = { calls: [{ id: 'call_0', tool: 'echo', arguments: '{"text":"x"}' }] };
  const { told } = await run([good, same, { text: 'Done.' }]);
  expect(ofType(told, 'tool')).toMatchObject([
    { step: 1, isError: false },
    { step: 2, isError: true },
  ]);
});

test('at the step limit the model is asked to close without tools', async () => {
  const { outcome, told, requests } = await run(
    [ask('echo', { text: '1' }), ask('echo', { text: '2' }), { text: 'So far.' }],
    {
      stepLimit: 3,
    },
  );
  expect(outcome).toEqual({
    reason: 'StepLimitReached',
    message: 'The agent used all 3 steps of its limit.',
    output: 'So far.',
    steps: 3,
  });
  expect(requests.map((request) => request.body.tool_choice)).toEqual(['auto', 'auto', 'none']);
  // It is told so, and people see nothing of it; a later run of the session sends the same.
  const before = expect.stringContaining('This is the last step') as string;
  expect(ofType(told, 'message').at(-2)).toMatchObject({ role: 'user', text: '', frame: { before, after: '' } });
  expect(requests[2]?.body.messages.at(-1)).toEqual({ role: 'user', content: before });
  expect(JSON.stringify(requests[1]?.body.messages)).not.toContain('last step');
});

test('a model that calls tools in spite of that ends there, with its last text', async () => {
  const { outcome } = await run(
    [{ text: 'Looking.', ...(ask('echo', { text: '1' }) as object) }, ask('echo', { text: '2' })],
    {
      stepLimit: 2,
    },
  );
  expect(outcome).toMatchObject({ reason: 'StepLimitReached', output: 'Looking.', steps: 2 });
});

test('what such a model says beside the call is its last text', async () => {
  const last = { text: 'I would go on.', ...(ask('echo', { text: '2' }) as object) };
  expect((await run([ask('echo', { text: '1' }), last], { stepLimit: 2 })).outcome.output).toBe('I would go on.');
});

test('one step of one, without tools, is complete', async () => {
  expect((await run([{ text: 'Hi.' }], { stepLimit: 1, tools: [] })).outcome.reason).toBe('Completed');
});

const LONG = (text: string): ChatAnswer => ({ text, finishReason: 'length' });

test('calls of an answer with an end that nobody knows are made', async () => {
  const odd = { ...(ask('echo', { text: 'x' }) as object), finishReason: 'eos' };
  const { outcome, told } = await run([odd, { text: 'Done.' }]);

  expect(outcome).toMatchObject({ reason: 'Completed', output: 'Done.', steps: 2 });
  expect(ofType(told, 'tool')).toMatchObject([{ result: { said: 'x' }, isError: false }]);
});

test.each([
  ['beside a text', 'I write it.'],
  ['alone', ''],
])(
  'a whole call %s in an answer that was cut is not made, and the model is told to make it again',
  async (_what, text) => {
    const cut = { ...(ask('echo', { text: 'long' }) as object), text, finishReason: 'length' };
    const again = ask('echo', { text: 'short' });
    const { outcome, requests, told } = await run([cut, again, { text: 'Done.' }]);

    expect(outcome).toMatchObject({ reason: 'Completed', output: 'Done.', steps: 3 });
    const [answer, result, note] = requests[1]?.body.messages.slice(-3) ?? [];
    expect(answer).toMatchObject({ role: 'assistant', tool_calls: [{ function: { name: 'echo' } }] });
    expect(result).toMatchObject({
      role: 'tool',
      content: expect.stringContaining('Not executed: the answer reached'),
    });
    expect(note).toMatchObject({ role: 'user', content: expect.stringContaining('Make them again with less in each') });
    const roles = ofType(told, 'message').map(({ role }) => role);
    expect(roles).toEqual(['assistant', 'tool', 'user', 'assistant', 'tool', 'assistant']);
    expect(ofType(told, 'tool')).toMatchObject([
      { step: 1, input: { text: 'long' }, isError: true },
      { step: 2, result: { said: 'short' }, isError: false },
    ]);
  },
);

/** Answers in turn to whoever asks what came. */
function steeringOf(...answers: string[][]) {
  let came: TranscriptMessage[] = [];
  const asked: number[] = [];
  return {
    asked,
    hear: () => {
      const next = answers[asked.push(asked.length) - 1] ?? [];
      came.push(...next.map((text) => ({ role: 'user' as const, text, steered: `run-${text}` })));
      return Promise.resolve(came.length > 0);
    },
    take: () => {
      const taken = came;
      came = [];
      return taken;
    },
  };
}

test('what people send stands before the next step, behind the results of this one', async () => {
  const steering = steeringOf([], ['Other way.', 'Quick.']);
  const answers = [
    ask('echo', { text: 'a' }),
    ask('echo', { text: 'b' }),
    ask('echo', { text: 'c' }),
    { text: 'Done.' },
  ];
  const { outcome, told, requests } = await run(answers, { steering });
  expect(outcome).toEqual({ reason: 'Completed', message: '', output: 'Done.', steps: 4 });
  expect(steering.asked).toHaveLength(3);
  const roles = (index: number) => requests[index]?.body.messages.map(({ role }) => role);
  expect(roles(1)).toEqual(['system', 'user', 'assistant', 'tool']);
  expect(roles(2)).toEqual(['system', 'user', 'assistant', 'tool', 'assistant', 'tool', 'user', 'user']);
  expect(requests[2]?.body.messages.slice(6).map(({ content }) => content)).toEqual(['Other way.', 'Quick.']);
  expect(requests[3]?.body.messages.slice(0, 8)).toEqual(requests[2]?.body.messages);
  expect(roles(3)?.slice(8)).toEqual(['assistant', 'tool']);
  expect(ofType(told, 'message').filter(({ role }) => role === 'user')).toMatchObject([
    { text: 'Other way.', steered: 'run-Other way.' },
    { text: 'Quick.', steered: 'run-Quick.' },
  ]);
});

test('what came while the model said its last word is answered too, while there are steps left', async () => {
  const late = steeringOf();
  late.take = (
    (taken) => () =>
      taken.splice(0)
  )([{ role: 'user' as const, text: 'And x?', steered: 'run-2' }]);
  const { outcome, requests } = await run([{ text: 'Done.' }, { text: 'x too.' }], { steering: late });
  expect(outcome).toMatchObject({ reason: 'Completed', output: 'x too.', steps: 2 });
  expect(requests[1]?.body.messages.map(({ role }) => role)).toEqual(['system', 'user', 'assistant', 'user']);
});

test('in the last step nothing is taken: it stays for the next run', async () => {
  const steering = steeringOf(['Late.'], ['Later.']);
  const { outcome, told } = await run([{ text: 'Done.' }], { steering, stepLimit: 1 });
  expect(outcome).toMatchObject({ reason: 'Completed', output: 'Done.' });
  expect(steering.asked).toEqual([]);
  expect(ofType(told, 'message')).toHaveLength(1);
});

test('an answer cut at the output limit is continued, and is one output', async () => {
  const { outcome, told, requests } = await run([LONG('Half a'), { text: ' loaf.' }]);
  expect(outcome).toEqual({ reason: 'Completed', message: '', output: 'Half a loaf.', steps: 2 });
  expect(ofType(told, 'warning')).toHaveLength(1);
  expect(requests[1]?.body.messages.slice(1)).toEqual([
    { role: 'user', content: 'Hello' },
    { role: 'assistant', content: 'Half a' },
    { role: 'user', content: expect.stringContaining('output limit') },
  ]);
  // As the model had it, and as a person sees it: without a word that nobody said.
  expect(ofType(told, 'message')[1]).toMatchObject({ role: 'user', text: '', frame: { after: '' } });
});

test('one that never comes to an end is no Completed run', async () => {
  const { outcome, requests } = await run([LONG('a'), LONG('b'), LONG('c'), LONG('d')]);
  expect(outcome).toMatchObject({ reason: 'OutputLimitReached', output: 'abcd', steps: 4 });
  expect(requests).toHaveLength(4);
  await server?.close();
  expect((await run([LONG('a')], { stepLimit: 1 })).outcome).toMatchObject({ reason: 'OutputLimitReached', steps: 1 });
});

test('an empty answer is asked for once more', async () => {
  const { outcome, requests } = await run([{ text: '' }, { text: 'Done.' }]);
  expect(outcome).toMatchObject({ reason: 'Completed', output: 'Done.', steps: 2 });
  expect(requests[1]?.body.messages.at(-1)).toMatchObject({ role: 'user', content: expect.stringContaining('empty') });
});

test('an agent that never speaks says so', async () => {
  const { outcome } = await run([ask('echo', { text: 'x' }), { text: '' }, { text: '' }]);
  expect(outcome).toMatchObject({ reason: 'EmptyAnswer', output: null, steps: 3 });
});

test('an answer that a filter blocked is not asked for again', async () => {
  const { outcome, requests } = await run([{ text: '', finishReason: 'content_filter' }]);
  expect(outcome).toMatchObject({ reason: 'ContentFiltered', output: null, steps: 1 });
  expect(requests).toHaveLength(1);
});

test('a model that refuses ends the run with what it said, and is not asked again', async () => {
  const requests: unknown[] = [];
  const answer = {
    id: 'msg_1',
    type: 'message',
    role: 'assistant',
    model: 'claude-sonnet-5',
    content: [{ type: 'text', text: 'I will not.' }],
    stop_reason: 'refusal',
    stop_sequence: null,
    usage: { input_tokens: 10, output_tokens: 3 },
  };
  const nothing = () => Promise.resolve();
  const outcome = await createAiSdkEngine((_url, init) => {
    requests.push(init?.body);
    return Promise.resolve(Response.json(answer));
  }).run(
    {
      provider: 'anthropic',
      model: 'claude-sonnet-5',
      baseUrl: 'http://gateway.test/v1',
      instructions: 'Be kind.',
      messages: [{ role: 'user', text: 'Hello' }],
      tools: [echo],
      stepLimit: 10,
    },
    { onTool: nothing, onMessage: nothing, onStep: nothing, onWarning: nothing, onCompaction: nothing },
    new AbortController().signal,
  );
  expect(outcome).toEqual({
    reason: 'ModelRefused',
    message:
      'The model refused to answer. Read output for what it said before; word the task in another way, or choose another model.',
    output: 'I will not.',
    steps: 1,
  });
  expect(requests).toHaveLength(1);
});

test('a tool that was stopped with no Error is told in words', async () => {
  const stopped = { ...echo, execute: () => Promise.reject(Object.assign(Object.create(null), { reason: 'x' })) };
  const { told } = await run([ask('echo', { text: 'x' }), { text: 'Sorry.' }], { tools: [stopped] });
  expect(ofType(told, 'tool')).toMatchObject([{ result: { error: 'The tool was stopped before it answered.' } }]);
});

describe('a model call that fails', () => {
  test('at step 2 keeps what was told and said before', async () => {
    const { outcome, told } = await run([
      { text: 'Looking.', ...(ask('echo', { text: 'x' }) as object) },
      { status: 400, body: JSON.stringify({ error: { type: 'invalid_request', message: 'context too long' } }) },
    ]);
    expect(outcome).toEqual({
      reason: 'ModelError',
      message: 'The model call failed (HTTP 400): context too long',
      output: 'Looking.',
      steps: 1,
    });
    expect(told.map((entry) => entry.type)).toEqual(['message', 'tool', 'message', 'step']);
  });

  test.each(['ModelNotConfigured', 'StepLimitReached'])(
    'with %s of the gateway has that reason and its words',
    async (type) => {
      const body = JSON.stringify({ error: { type, message: 'Set spec.engine of Box b.' } });
      expect((await run([{ status: 400, body }])).outcome).toEqual({
        reason: type,
        message: 'Set spec.engine of Box b.',
        output: null,
        steps: 0,
      });
    },
  );

  test.each([
    ['an error page', { status: 500, body: '<html>oops</html>' }],
    ['an answer that is not JSON', { status: 200, body: 'hello' }],
    ['an answer of another shape', { status: 200, body: '{"choices":7}' }],
  ])('with %s is a ModelError', async (_name, answer) => {
    const { outcome, requests } = await run([answer]);
    expect(outcome).toMatchObject({ reason: 'ModelError', message: expect.stringMatching(/^The model call failed/) });
    expect(requests).toHaveLength(1);
  });
});

describe('an abort', () => {
  test('ends a model call at once', async () => {
    const abort = new AbortController();
    const running = run(['hang'], {}, abort);
    await eventually(() => server !== undefined);
    await server?.received(1);
    abort.abort({ reason: 'Cancelled' });
    expect((await running).outcome).toEqual({ reason: 'Aborted', message: '', output: null, steps: 0, atRest: true });
  });

  test('reaches a tool that is working, and the last text stays', async () => {
    const abort = new AbortController();
    const patient: EngineTool = {
      ...echo,
      execute: (_input, signal) =>
        new Promise((_resolve, reject) => {
          signal.addEventListener('abort', () => reject(new Error('stopped')));
          abort.abort();
        }),
    };
    const first = { text: 'Before.', ...(ask('echo', { text: 'x' }) as object) };
    const { outcome, requests } = await run(
      [ask('nothing', {}), first, { text: 'never' }],
      { tools: [patient] },
      abort,
    );
    expect(outcome).toMatchObject({ reason: 'Aborted', atRest: false });
    expect(requests).toHaveLength(2);
  });

  test('keeps what a tool came to until then, and the calls after it as not executed', async () => {
    const abort = new AbortController();
    const slow: EngineTool = {
      ...echo,
      execute: () => {
        abort.abort({ reason: 'Cancelled' });
        return Promise.resolve({ isError: true, result: { output: 'half' } });
      },
    };
    const calls = ['a', 'b'].map((text) => ({ tool: 'echo', arguments: JSON.stringify({ text }) }));
    const { outcome, told, requests } = await run([{ calls }, { text: 'never' }], { tools: [slow] }, abort);
    expect(outcome).toEqual({ reason: 'Aborted', message: '', output: null, steps: 1, atRest: false });
    expect(requests).toHaveLength(1);
    const notExecuted = { error: 'Not executed: the run was stopped before.' };
    expect(ofType(told, 'tool')).toMatchObject([{ result: { output: 'half' } }, { result: notExecuted }]);
    expect(ofType(told, 'message')).toMatchObject([
      { role: 'assistant', toolCalls: [{}, {}] },
      { role: 'tool', result: '{"output":"half"}', isError: true },
      { role: 'tool', result: JSON.stringify(notExecuted), isError: true },
    ]);
  });
});

describe('history', () => {
  const user = (text: string): TranscriptMessage => ({ role: 'user', text });
  const asked: TranscriptMessage = {
    role: 'assistant',
    text: 'Let me see.',
    toolCalls: [
      { id: 'a', tool: 'shell', input: '{"command":"ls"}' },
      { id: 'b', tool: 'shell', input: 'cut {' },
    ],
  };
  test('goes to the model, which accepts it', async () => {
    const { outcome, requests } = await run([{ text: 'Yes.' }], { messages: [user('go'), asked, user('and?')] });
    expect(outcome.output).toBe('Yes.');
    expect(requests[0]?.body.messages.map((message) => message.role)).toEqual([
      'system',
      'user',
      'assistant',
      'tool',
      'tool',
      'user',
    ]);
  });
});

async function eventually(condition: () => boolean): Promise<void> {
  while (!condition()) await new Promise((resolve) => setImmediate(resolve));
}

describe('an agent whose last message must fit a schema', () => {
  const schema = { type: 'object', properties: { total: { type: 'number' } }, required: ['total'] };
  const outputCheck = outputCheckOf(schema);

  test('ends with the JSON alone', async () => {
    const { outcome, requests } = await run([{ text: '```json\n{"total": 2}\n```' }], { outputCheck });
    expect(outcome).toEqual({ reason: 'Completed', message: '', output: '{"total": 2}', steps: 1 });
    expect(requests).toHaveLength(1);
  });

  test('is told what is wrong, and corrects it', async () => {
    const { outcome, told, requests } = await run(
      [{ text: 'Two.' }, { text: '{"total":"2"}' }, { text: '{"total":2}' }],
      {
        outputCheck,
      },
    );
    expect(outcome).toEqual({ reason: 'Completed', message: '', output: '{"total":2}', steps: 3 });
    const notes = requests.map(({ body }) => String(body.messages.at(-1)?.content));
    expect(notes[1]).toContain('does not fit the JSON Schema that it must fit: it is not JSON alone.');
    expect(notes[2]).toContain('total: Invalid input: expected number, received string');
    expect(requests[2]?.body.messages.map(({ role }) => role)).toEqual([
      'system',
      'user',
      'assistant',
      'user',
      'assistant',
      'user',
    ]);
    expect(ofType(told, 'message')).toHaveLength(5);
  });

  test('ends with a reason of its own when two corrections do not help', async () => {
    const { outcome, requests } = await run([{ text: 'One.' }, { text: 'Two.' }, { text: 'Three.' }], { outputCheck });
    expect(outcome).toMatchObject({ reason: 'OutputMismatch', output: 'Three.', steps: 3 });
    expect(outcome.message).toContain('The last message does not fit spec.outputSchema of the agent: it is not JSON');
    expect(requests).toHaveLength(3);
  });

  test('in pieces is checked as a whole', async () => {
    const { outcome } = await run([{ text: '{"total"', finishReason: 'length' }, { text: ':2}' }], { outputCheck });
    expect(outcome).toMatchObject({ reason: 'Completed', output: '{"total":2}' });
  });

  test('is not corrected beyond its step limit', async () => {
    const { outcome, requests } = await run([{ text: 'One.' }], { outputCheck, stepLimit: 1 });
    expect(outcome).toMatchObject({ reason: 'OutputMismatch', output: 'One.', steps: 1 });
    expect(requests).toHaveLength(1);
  });

  test('may refuse, or be blocked, in words', async () => {
    const { outcome } = await run([{ text: 'No.', finishReason: 'content_filter' }], { outputCheck });
    expect(outcome).toMatchObject({ reason: 'ContentFiltered', output: 'No.', steps: 1 });
  });
});

describe('calls of one step', () => {
  const slow = (name: string, isParallel: boolean, work: (text: string) => Promise<void>): EngineTool => ({
    ...echo,
    name,
    isParallel,
    execute: async ({ text }) => {
      await work(String(text));
      return { isError: false, result: { said: text } };
    },
  });
  const many = (...calls: [tool: string, text: string][]): ChatAnswer => ({
    calls: calls.map(([tool, text], index) => ({ id: `c${index}`, tool, arguments: JSON.stringify({ text }) })),
  });

  test('that may stand beside each other do, and results and records keep the order of the calls', async () => {
    const both = Promise.withResolvers<void>();
    const ended: string[] = [];
    // The first ends after the second: one after the other they would never end.
    const look = slow('look', true, async (text) => {
      if (text === '2') both.resolve();
      else await both.promise;
      ended.push(text);
    });
    const { told, requests } = await run([many(['look', '1'], ['look', '2']), { text: 'Done.' }], { tools: [look] });
    expect(ended).toEqual(['2', '1']);
    expect(ofType(told, 'tool').map(({ result }) => result)).toEqual([{ said: '1' }, { said: '2' }]);
    const results = requests[1]?.body.messages.filter(({ role }) => role === 'tool').map(({ content }) => content);
    expect(results).toEqual(['{"said":"1"}', '{"said":"2"}']);
  });

  test('a call that writes waits for those before it, and those behind wait for it', async () => {
    const seen: string[] = [];
    const note = (text: string) => async () => {
      seen.push(`${text} begins`);
      await new Promise<void>((resolve) => setImmediate(resolve));
      seen.push(`${text} ends`);
    };
    const tools = [slow('look', true, (text) => note(text)()), slow('write', false, (text) => note(text)())];
    await run([many(['look', 'a'], ['write', 'b'], ['look', 'c']), { text: 'Done.' }], { tools });
    expect(seen).toEqual(['a begins', 'a ends', 'b begins', 'b ends', 'c begins', 'c ends']);
  });

  test('a call behind one that asks a person is not executed, also when it only reads', async () => {
    const seen: string[] = [];
    const asks: EngineTool = {
      ...echo,
      name: 'asks',
      execute: () => Promise.resolve({ isError: false, result: {}, pause: { kind: 'question', text: 'May I?' } }),
    };
    const look = slow('look', true, (text) => Promise.resolve(void seen.push(text)));
    const { outcome, told } = await run([many(['look', 'a'], ['asks', 'x'], ['look', 'b'])], { tools: [look, asks] });
    expect([seen, outcome.open?.tool]).toEqual([['a'], 'asks']);
    expect(ofType(told, 'tool').map(({ tool, isError }) => [tool, isError])).toEqual([
      ['look', false],
      ['look', true],
    ]);
  });
});
