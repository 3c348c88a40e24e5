/** What an agent says of its model calls, as each vendor gets it through the real SDKs and the real gateway. */
import { ConfigMaps } from '../../src/kube/core-types.js';
import type { FakeAnswer, FakeFault, SeenRequest } from '../builders/fake-provider.js';
import { RELEASE } from '../builders/gateway-world.js';
import {
  letTimePass,
  letWaitsPass,
  PROVIDER_APIS,
  runAgent,
  scene,
  usageOf,
  type Case,
} from './support/vendor-scene.js';

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

describe('an agent with fallbackModels', () => {
  const FALLBACKS = { fallbackModels: ['google/gemini-3.5-flash', 'openai/gpt-5.5', 'claude-haiku-4-5'] };
  // There is none for Google.
  const options = { agent: FALLBACKS, otherKeys: ['OPENAI_API_KEY'] };
  const refusal = (status: number, message = 'No.') => ({ fault: 'status' as const, status, message });

  test.each([
    ['has no such model', refusal(404, 'model: claude-sonnet-5')],
    ['says so with another status', refusal(400, 'The model `claude-sonnet-5` does not exist.')],
    ['refuses the key', refusal(401)],
    ['refuses the model', refusal(403)],
    ['has an account without credit', { ...refusal(429), code: 'insufficient_quota' }],
    ['stays overloaded', refusal(529)],
    ['cuts every answer', { fault: 'cut' as const, said: {} }],
  ])('goes on with the first that serves, when the provider %s', async (_what, fault) => {
    const usage = { input: 1000, output: 100 };
    const answers = ({ vendor }: SeenRequest) => (vendor === 'anthropic' ? fault : { text: 'Done.', usage });
    const at = await scene(ANTHROPIC, answers, options);
    const warnings: string[] = [];
    const began = at.world.clock.monotonic();

    expect(await letWaitsPass(at, runAgent(at, { warnings }))).toMatchObject({ reason: 'Completed', output: 'Done.' });
    expect(at.world.clock.monotonic() - began).toBeLessThanOrEqual(60_000);
    expect(at.vendor.requests.map(({ vendor }) => vendor).filter((vendor) => vendor !== 'anthropic')).toEqual([
      'openai',
    ]);
    expect(warnings).toEqual([
      expect.stringMatching(/^Model gemini-3.5-flash of google goes on in the place of claude-sonnet-5 of anthropic: /),
      expect.stringMatching(
        /^Model gpt-5.5 of openai goes on in the place of gemini-3.5-flash of google: there is no key/,
      ),
    ]);
    // At the price of the one that answered.
    if (fault.fault === 'status') {
      expect(usageOf(at)).toMatchObject({ steps: 1, inputTokens: 1000, outputTokens: 100, costUsd: '0.008000' });
    }
  });

  test('keeps what was done when its model goes away in the middle', async () => {
    const answers = ({ body }: SeenRequest) =>
      body['model'] !== 'claude-sonnet-5'
        ? { text: 'Done.' }
        : at.vendor.requests.length === 0
          ? { text: 'I look.', ...call }
          : refusal(404);
    const at: Awaited<ReturnType<typeof scene>> = await scene(ANTHROPIC, answers, {
      agent: { fallbackModels: ['claude-haiku-4-5'] },
    });
    expect(await runAgent(at)).toMatchObject({ reason: 'Completed', output: 'Done.', steps: 2 });
    const [first, refused, last] = at.vendor.requests;
    expect([first, refused, last].map((seen) => seen?.body['model'])).toEqual([
      'claude-sonnet-5',
      'claude-sonnet-5',
      'claude-haiku-4-5',
    ]);
    expect(last?.body['messages']).toMatchObject([
      { role: 'user' },
      { role: 'assistant', content: [{ text: 'I look.' }, { type: 'tool_use', name: 'echo' }] },
      { role: 'user', content: [{ type: 'tool_result' }] },
    ]);
  });

  test.each([
    ['a request that it refuses', refusal(400, 'messages: text content blocks must be non-empty'), 'ModelError'],
    ['an answer that is filtered', { text: '' }, 'EmptyAnswer'],
  ])('asks no other model for %s', async (_what, answer, reason) => {
    const at = await scene(ANTHROPIC, () => answer, options);
    expect(await runAgent(at)).toMatchObject({ reason });
    expect(at.vendor.requests.every(({ body }) => body['model'] === 'claude-sonnet-5')).toBe(true);
  });

  describe('under a budget in US dollars', () => {
    const inDollars = (at: Awaited<ReturnType<typeof scene>>) =>
      at.world.changeRun('helper-1', { status: { budget: { at: '2026-01-01T00:00:00.000Z', granted: { usd: '9' } } } });
    const answers = ({ body }: SeenRequest) =>
      body['model'] === 'claude-sonnet-5' ? refusal(404, 'gone') : { text: 'Done.' };

    test('passes over one without a price, and goes on with the next', async () => {
      const fallbackModels = ['claude-haiku-5-5', 'claude-haiku-4-5'];
      const at = await scene(ANTHROPIC, answers, { agent: { fallbackModels } });
      inDollars(at);
      const warnings: string[] = [];
      expect(await runAgent(at, { warnings })).toMatchObject({ reason: 'Completed', output: 'Done.' });
      expect(at.vendor.requests.map(({ body }) => body['model'])).toEqual(['claude-sonnet-5', 'claude-haiku-4-5']);
      expect(warnings).toEqual([
        expect.stringContaining('Model claude-haiku-5-5 of anthropic goes on'),
        expect.stringMatching(/^Model claude-haiku-5-5 of anthropic is passed over: .*price of its model is not known/),
        expect.stringMatching(/^Model claude-haiku-4-5 .* in the place of claude-sonnet-5 of anthropic: .*404: gone/),
      ]);
    });

    test('ends with why its own model does not serve when only one without a price is left', async () => {
      const at = await scene(ANTHROPIC, answers, { agent: { fallbackModels: ['claude-haiku-5-5'] } });
      inDollars(at);
      const outcome = await runAgent(at);
      expect(outcome).toMatchObject({ reason: 'ModelError', message: expect.stringContaining('HTTP 404: gone') });
    });

    test('ends when its own model has no price', async () => {
      const one = { ...ANTHROPIC, model: 'claude-haiku-5-5' } as unknown as Case;
      const at = await scene(one, answers, { agent: { fallbackModels: ['claude-haiku-4-5'] } });
      inDollars(at);
      expect(await runAgent(at)).toMatchObject({ reason: 'ModelUnpriced' });
    });
  });

  test('ends with the words of the last when none serves', async () => {
    const at = await scene(ANTHROPIC, () => refusal(404, 'gone'), options);
    const outcome = await runAgent(at);
    expect(outcome).toMatchObject({ reason: 'ModelError', steps: 0 });
    expect(outcome.message).toContain('anthropic answered HTTP 404: gone');
    expect(at.vendor.requests.map(({ body }) => body['model'])).toEqual([
      'claude-sonnet-5',
      'gpt-5.5',
      'claude-haiku-4-5',
    ]);
  });
});

test('what the installation says of a model counts before what the SDK knows: its limit, and what it refuses', async () => {
  const one = { ...ANTHROPIC, model: 'claude-unheard-of' } as unknown as Case;
  const at = await scene(one, [call], { agent: { temperature: 0.5, reasoning: 'high' } });
  at.world.api.seed(ConfigMaps, {
    apiVersion: 'v1',
    kind: 'ConfigMap',
    metadata: { name: 'boxwright-model-prices', namespace: RELEASE },
    data: {
      'prices.yaml': 'anthropic/claude-unheard-of: { maxOutputTokens: 20000, refuses: [reasoning, temperature] }',
    },
  });
  await at.world.clock.advance(31_000);
  const warnings: string[] = [];

  expect(await runAgent(at, { warnings })).toMatchObject({ reason: 'Completed', steps: 2 });
  for (const { body } of at.vendor.requests) {
    expect(body['max_tokens']).toBe(20_000);
    for (const field of ['thinking', 'output_config', 'temperature']) expect(body).not.toHaveProperty(field);
  }
  expect(warnings.filter((text) => text.includes('the catalogue of this installation'))).toHaveLength(1);
});

test('an agent is compacted where it says', async () => {
  const at = await scene(LOCAL, [], { agent: { compactAt: 4000 } });
  expect(at.claim.model.compactAt).toBe(4000);
});

function valueAt(body: Record<string, unknown>, path: string): unknown {
  return path.split('.').reduce<unknown>((value, name) => (value as Record<string, unknown> | undefined)?.[name], body);
}
