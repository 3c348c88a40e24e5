/** What an agent says of its model calls, as each vendor gets it through the real SDKs and the real gateway. */
import type { FakeAnswer, FakeFault, SeenRequest } from '../builders/fake-provider.js';
import { letTimePass, PROVIDER_APIS, runAgent, scene, usageOf, type Case } from './support/vendor-scene.js';

const [ANTHROPIC, OPENAI, GOOGLE] = PROVIDER_APIS;
const LOCAL = PROVIDER_APIS[6];
const call: FakeAnswer = { calls: [{ tool: 'echo', input: { text: 'x' } }] };

const ASKED: Record<string, object> = {
  anthropic: {
    max_tokens: 3000,
    thinking: { type: 'adaptive', display: 'summarized' },
    output_config: { effort: 'low' },
  },
  openai: { max_output_tokens: 3000, reasoning: { effort: 'low' } },
  google: { generationConfig: { maxOutputTokens: 3000, thinkingConfig: { thinkingLevel: 'low' } } },
  mistral: { max_tokens: 3000 },
  xai: { max_output_tokens: 3000, reasoning: { effort: 'low' } },
  deepseek: { max_tokens: 3000 },
  boxwright: { max_tokens: 3000, reasoning_effort: 'low' },
};

test.each(PROVIDER_APIS)('$provider is asked to think and to write as the agent says', async (one) => {
  const at = await scene(one, [], { agent: { reasoning: 'low', maxOutputTokens: 3000 } });
  expect(await runAgent(at)).toMatchObject({ reason: 'Completed' });
  expect(at.vendor.requests[0]?.body).toMatchObject(ASKED[one.provider] ?? {});
});

test('an agent that says nothing leaves it to the model', async () => {
  const at = await scene(ANTHROPIC);
  await runAgent(at);
  const body = at.vendor.requests[0]?.body ?? {};
  expect(body).not.toHaveProperty('thinking');
  expect(body['max_tokens']).toBe(64_000);
});

test.each([
  ['there is room', 20_000, { max_tokens: 20_000, thinking: { type: 'enabled', budget_tokens: 10_000 } }],
  ['there is none', 1_500, { max_tokens: 1_500, thinking: { type: 'disabled' } }],
])('a model that thinks by tokens keeps half of the limit for its answer, if %s', async (_when, limit, sent) => {
  const haiku = { ...ANTHROPIC, model: 'claude-haiku-4-5' } as unknown as Case;
  const at = await scene(haiku, [], { agent: { reasoning: 'high', maxOutputTokens: limit } });
  await runAgent(at);
  expect(at.vendor.requests[0]?.body).toMatchObject(sent);
});

test.each([
  [OPENAI, 'reasoning', "Unsupported parameter: 'reasoning.effort' is not supported with this model."],
  [OPENAI, 'reasoning', "Unsupported value: 'high' is not supported with the 'gpt-5.5' model. Param: reasoning.effort"],
  [ANTHROPIC, 'thinking', 'adaptive thinking is not supported on this model'],
  [ANTHROPIC, 'output_config', 'This model does not support the effort parameter.'],
  [GOOGLE, 'generationConfig.thinkingConfig', 'Thinking level is not supported for this model.'],
  [LOCAL, 'reasoning_effort', 'Extra inputs are not permitted: reasoning_effort'],
] as const)('[%#] a refused parameter is left out: the run goes on, and says so once', async (one, field, message) => {
  const refused = (seen: SeenRequest): FakeAnswer | FakeFault =>
    valueAt(seen.body, field) === undefined
      ? at.vendor.requests.length === 1
        ? call
        : { text: 'Done.' }
      : { fault: 'status', status: 400, message };
  const at: Awaited<ReturnType<typeof scene>> = await scene(one, refused, { agent: { reasoning: 'high' } });
  const warnings: string[] = [];

  expect(await runAgent(at, { warnings })).toMatchObject({ reason: 'Completed', output: 'Done.', steps: 2 });
  expect(at.vendor.requests).toHaveLength(3);
  expect(usageOf(at)).toMatchObject({ steps: 2, inputTokens: 20, outputTokens: 10 });
  expect(warnings).toEqual([expect.stringContaining('The model works without parameter reasoning of the agent: ')]);
  expect(warnings[0]).toContain(message);
});

test('a temperature that a model does not take is left out', async () => {
  const answers = (seen: SeenRequest): FakeAnswer | FakeFault =>
    seen.body['temperature'] === undefined
      ? { text: 'Done.' }
      : { fault: 'status', status: 400, message: '`temperature` is deprecated for this model.' };
  const at = await scene(LOCAL, answers, { agent: { temperature: 0.3 } });
  const warnings: string[] = [];
  expect(await runAgent(at, { warnings })).toMatchObject({ reason: 'Completed', output: 'Done.' });
  expect(warnings).toEqual([expect.stringContaining('without parameter temperature')]);
});

test('what the SDK leaves out is told as well, once in a run', async () => {
  const at = await scene(OPENAI, [call], { agent: { temperature: 0.3 } });
  const warnings: string[] = [];
  await runAgent(at, { warnings });
  expect(at.vendor.requests[1]?.body).not.toHaveProperty('temperature');
  expect(warnings).toEqual([
    'The model does not take temperature as the agent sets it: temperature is not supported for reasoning models',
  ]);
});

test('a refusal that is about something else ends the run', async () => {
  const at = await scene(OPENAI, [{ fault: 'status', status: 400, message: 'Invalid prompt.' }], {
    agent: { reasoning: 'high' },
  });
  expect(await runAgent(at)).toMatchObject({ reason: 'ModelError' });
  expect(at.vendor.requests).toHaveLength(1);
});

test.each([
  ['a model that thinks asks for what it may write', 'high', 1],
  ['another one takes what is granted, while that is enough', 'low', 0],
])('near the end of a grant %s', async (_what, reasoning, asks) => {
  const at = await scene(ANTHROPIC, [], { agent: { reasoning } });
  at.world.changeRun('helper-1', {
    status: { budget: { at: '2026-01-01T00:00:00.000Z', granted: { tokens: 50_000 } } },
  });
  const running = runAgent(at);
  if (asks === 1) {
    while (at.world.run('helper-1').status?.budget?.wanted === undefined) {
      await new Promise((resolve) => setImmediate(resolve));
    }
    const wanted = at.world.run('helper-1').status?.budget?.wanted ?? {};
    expect(wanted.tokens).toBeGreaterThan(64_000);
    at.world.changeRun('helper-1', {
      status: { budget: { at: '2026-01-01T00:00:00.000Z', granted: wanted, wanted, answered: wanted } },
    });
  }
  await letTimePass(at, running);
  const limit = at.vendor.requests[0]?.body['max_tokens'];
  if (asks === 1) expect(limit).toBe(64_000);
  else expect(limit).toBeLessThan(50_000);
});

function valueAt(body: Record<string, unknown>, path: string): unknown {
  return path.split('.').reduce<unknown>((value, name) => (value as Record<string, unknown> | undefined)?.[name], body);
}
