/**
 * Model calls of runs from end to end over loopback: the runner's engine on the real SDK of each vendor, the real handler of
 * the gateway, and vendors that speak their published protocols.
 */
import { streamText, type LanguageModel } from 'ai';
import { parseMicroUsd } from '../../src/run/usage/money.js';
import { priceOf, PRICES } from '../../src/run/usage/prices.js';
import { AgentRunStatus, type RunBudget } from '../../src/api/v1alpha1/agent-run.js';
import { MAX_CALL_TOKENS } from '../../src/run/usage/saturating.js';
import { ConfigMaps, Jobs, Secrets } from '../../src/kube/core-types.js';
import { languageModel, NOTHING_STORED } from '../../src/runner/model-provider.js';
import type { FakeAnswer, FakeFault, FakeUsage, SeenRequest } from '../builders/fake-provider.js';
import { startFakeProvider } from '../builders/fake-provider.js';
import { GatewayWorld, NAMESPACE, RELEASE } from '../builders/gateway-world.js';
import {
  ANTHROPIC,
  KEY,
  PROVIDER_APIS,
  letTimePass,
  open,
  letWaitsPass,
  runAgent,
  scene,
  usageOf,
  type Case,
  type Scene,
  type SceneOptions,
} from './support/vendor-scene.js';

const WRITTEN =
  'The answer begins with a few words that everybody pays for, and then nothing more of it comes. '.repeat(2);

/** An answer with counts of which nothing is made up: four bytes are a token. */
function counted({ body }: SeenRequest, said: FakeAnswer): FakeAnswer {
  const tokens = (value: unknown) => Math.ceil(Buffer.byteLength(JSON.stringify(value)) / 4);
  return { ...said, usage: { input: tokens(body), output: tokens(said.text ?? said.calls) } };
}

const RULES = 'Look at the files before you change them, and say in one sentence what you did and why. '.repeat(60);

/** How an answer breaks off after {@link WRITTEN}. */
type Breaking = 'cut' | 'overloaded';

/** In micro-USD. */
function priced({ provider, model }: Case, { input, output }: FakeUsage): number {
  const own = { inputMicroUsd: 1_000_000, outputMicroUsd: 2_000_000 };
  const { inputMicroUsd, outputMicroUsd } = priceOf(PRICES, provider, model) ?? own;
  return (input * inputMicroUsd + output * outputMicroUsd) / 1_000_000;
}

describe.each(PROVIDER_APIS)('$provider', (one) => {
  test('an agent works through its tools, and what it used is what the vendor gave', async () => {
    const usage = { input: 1200, output: 80, cached: 200 };
    const at = await scene(one, [
      { text: 'I look.', calls: [{ tool: 'echo', input: { text: 'x' } }], usage },
      { text: 'Done.', usage: { input: 1500, output: 30 } },
    ]);

    expect(await runAgent(at)).toEqual({ reason: 'Completed', message: '', output: 'Done.', steps: 2 });
    expect(at.vendor.requests.map(({ path }) => path)).toEqual([one.path, one.path]);
    expect(usageOf(at)).toMatchObject({ steps: 2, inputTokens: 2700, outputTokens: 110, totalTokens: 2810 });
    expect(parseMicroUsd(usageOf(at)?.costUsd)).toBe(COSTS[one.provider]);
    const metrics = await at.gateway.registry.metrics();
    // The others' servers here say nothing of a cache.
    const cached = ['mistral', 'boxwright'].includes(one.provider) ? 0 : 200;
    expect(metrics).toMatch(new RegExp(`boxwright_gateway_model_tokens_total\\{.*kind="input"\\} ${2700 - cached}\n`));
    expect(metrics).toMatch(new RegExp(`boxwright_gateway_model_tokens_total\\{.*kind="cache_read"\\} ${cached}\n`));
    expect(metrics).toMatch(/boxwright_gateway_model_tokens_total\{.*kind="output"\} 110\n/);
    const [, cost] = /boxwright_gateway_model_cost_usd_total\{.*\} (.*)\n/.exec(metrics) ?? [];
    expect(Math.round(Number(cost) * 1_000_000)).toBe(COSTS[one.provider]);
  });

  test('absurd counts are cut for each call, and the run ends with a status that can be stored', async () => {
    const most = Number.MAX_SAFE_INTEGER;
    const at = await scene(one, [
      { calls: [{ tool: 'echo', input: { text: 'x' } }], usage: { input: most, output: most, cached: most } },
      { text: 'Done.', usage: { input: most, output: most } },
    ]);

    expect(await runAgent(at)).toMatchObject({ reason: 'Completed', steps: 2 });
    const outcome = { reason: 'Completed', message: '', output: 'Done.' };
    await at.world.call(at.gateway, at.pod, 'finish', { epoch: 1, events: [], outcome });

    const { status } = at.world.run('helper-1');
    expect(AgentRunStatus.safeParse(status).error).toBeUndefined();
    const all = { inputTokens: 2 * MAX_CALL_TOKENS, outputTokens: 2 * MAX_CALL_TOKENS };
    expect(status).toMatchObject({ phase: 'done', usageFinal: true, usage: { steps: 2, ...all } });
    expect(at.gateway.logs.filter((line) => line.includes('more tokens than one call can use'))).toHaveLength(1);
  });

  test('the key goes to the vendor alone, and the run token never does', async () => {
    const at = await scene(one);

    await runAgent(at);

    const [request] = at.vendor.requests;
    expect(JSON.stringify(request?.headers)).toContain(KEY);
    expect(JSON.stringify([request?.headers, request?.body])).not.toContain(at.pod.token);
    expect(at.heard.join()).not.toContain(KEY);
    expect(at.gateway.logs.join()).not.toContain(KEY);
    expect(JSON.stringify(at.claim)).not.toContain(KEY);
  });

  test('a streamed answer goes through and is counted', async () => {
    const at = await scene(one, [{ text: 'Streamed.', usage: { input: 100, output: 20 } }]);

    const result = streamText({
      model: await modelOf(at),
      prompt: 'Hi',
      maxRetries: 0,
      providerOptions: NOTHING_STORED,
    });

    expect(await result.text).toBe('Streamed.');
    expect(at.vendor.requests[0]?.streamed).toBe(true);
    expect(usageOf(at)).toMatchObject({ steps: 1, inputTokens: 100, outputTokens: 20 });
  });

  test('whatever breaks on the way, the run goes on, and is charged within 5 % of what the vendor would charge', async () => {
    const call: FakeAnswer = { calls: [{ tool: 'echo', input: { text: 'x' } }] };
    const story: readonly (FakeAnswer | FakeFault | Breaking)[] = [
      { fault: 'reset' },
      call,
      'cut',
      { fault: 'html' },
      { fault: 'status', status: 529, message: 'Overloaded' },
      call,
      'overloaded',
      { fault: 'empty' },
      { text: 'Whole.' },
    ];
    const at = await scene(one, (seen) => {
      const told = story[at.vendor.requests.length] ?? { text: 'No more was expected.' };
      if (typeof told === 'string') return { fault: told, said: counted(seen, { text: WRITTEN }) };
      return 'fault' in told ? told : counted(seen, told);
    });

    const outcome = await letWaitsPass(at, runAgent(at, { instructions: RULES }));
    expect(outcome).toMatchObject({ reason: 'Completed', output: 'Whole.', steps: 3 });
    expect(at.vendor.requests).toHaveLength(story.length);
    expect(usageOf(at)?.steps).toBe(3);
    const paid = at.vendor.spent.reduce((sum, usage) => sum + priced(one, usage), 0);
    const booked = parseMicroUsd(usageOf(at)?.costUsd) ?? 0;
    expect(booked / paid).toBeGreaterThan(0.95);
    expect(booked / paid).toBeLessThan(1.05);
  });

  test('a refused key ends the run with the place of the key, without the key', async () => {
    const at = await scene(one, [], { key: 'sk-wrong-0123456789abcdef' });

    const outcome = await runAgent(at);

    expect(outcome).toMatchObject({ reason: 'ModelError', output: null, steps: 0 });
    expect(outcome.message).toBe(
      `${one.provider} answered HTTP 401: invalid key [redacted]. Check key ${one.secretKey} of Secret models in namespace bw-lab: it may be wrong, or without access to this model.`,
    );
    expect(at.vendor.requests).toHaveLength(1);
    expect(usageOf(at)).toMatchObject({ inputTokens: 0, costUsd: '0.000000' });
  });

  test.each(['invalid-json', 'other-json', 'empty', 'html', 'reset'] as const)(
    '%s is no answer: the call is made again, and costs once',
    async (fault) => {
      const at = await scene(one, [{ fault }, { fault }, { text: 'Now.', usage: { input: 7, output: 3 } }]);

      expect(await letTimePass(at, runAgent(at))).toMatchObject({ reason: 'Completed', output: 'Now.', steps: 1 });
      expect(at.vendor.requests).toHaveLength(3);
      expect(usageOf(at)).toMatchObject({ steps: 1, inputTokens: 7, outputTokens: 3 });
    },
  );

  test('a model that calls tools without end is stopped at its step limit, and every call is counted once', async () => {
    const usage = { input: 100, output: 10 };
    const at = await scene(one, () => ({ calls: [{ tool: 'echo', input: { text: 'x' } }], usage }), { stepLimit: 4 });

    expect(await runAgent(at)).toMatchObject({ reason: 'StepLimitReached', steps: 4 });
    expect(at.vendor.requests).toHaveLength(4);
    expect(usageOf(at)).toMatchObject({ steps: 4, inputTokens: 400, outputTokens: 40 });
  });

  test('an answer that does not say what it used is charged with an estimate', async () => {
    const at = await scene(one, [{ fault: 'no-usage' }]);

    await letTimePass(at, runAgent(at));

    const bytes = Buffer.byteLength(JSON.stringify(at.vendor.requests[0]?.body));
    const { steps, inputTokens = 0, outputTokens = 0 } = usageOf(at) ?? {};
    expect(steps).toBe(1);
    expect(inputTokens).toBeGreaterThan(bytes / 6);
    expect(inputTokens).toBeLessThan(bytes / 2);
    expect(outputTokens).toBeGreaterThan(0);
    expect(outputTokens).toBeLessThan(10);
  });

  test('429 waits as long as the vendor asks, 500 a moment; then the call succeeds and counts once', async () => {
    const at = await scene(one, [
      { fault: 'status', status: 429, retryAfter: '30' },
      { fault: 'status', status: 500 },
      { text: 'Now.', usage: { input: 7, output: 3 } },
    ]);
    const began = at.world.clock.monotonic();

    expect(await letTimePass(at, runAgent(at))).toMatchObject({ reason: 'Completed', output: 'Now.', steps: 1 });
    expect(at.world.clock.monotonic() - began).toBeGreaterThanOrEqual(30_000);
    expect(at.vendor.requests).toHaveLength(3);
    expect(usageOf(at)).toMatchObject({ steps: 1, inputTokens: 7, outputTokens: 3 });
  });

  test('no other model, path or stored thing passes', async () => {
    const at = await scene(one);
    const other = languageModel({
      provider: one.provider,
      model: 'another-model',
      baseUrl: at.url + at.claim.model.basePath,
      fetch: at.fetch,
    });
    const result = streamText({
      model: await other,
      prompt: 'Hi',
      maxRetries: 0,
      providerOptions: NOTHING_STORED,
      onError: () => undefined,
    });
    await result.consumeStream({ onError: () => undefined });
    const post = (path: string, body: unknown) =>
      at.world.post(at.gateway, at.claim.model.basePath + path, body, at.pod.token);

    expect(at.heard[0]).toContain(`this run may use model ${one.model} alone`);
    expect((await post('/files', {})).status).toBe(404);
    expect((await post('/../files', {})).status).toBe(404);
    expect(at.vendor.requests).toEqual([]);
  });
});

test.each(PROVIDER_APIS.filter(({ provider }) => provider !== 'anthropic' && provider !== 'google'))(
  '$provider: tool arguments that are no JSON are an error of the tool, and the run goes on',
  async (one) => {
    const usage = { input: 100, output: 10 };
    const at = await scene(one, [
      { calls: [{ tool: 'echo', input: {}, raw: '{"text": "x' }], usage },
      { text: 'Done.', usage },
    ]);

    expect(await runAgent(at)).toMatchObject({ reason: 'Completed', output: 'Done.', steps: 2 });
    expect(JSON.stringify(at.vendor.requests[1]?.body)).toContain('Invalid input for tool echo');
    expect(usageOf(at)).toMatchObject({ steps: 2, inputTokens: 200, outputTokens: 20 });
  },
);

/** Micro-USD of 2,700 input tokens, 200 of them cached (where the vendor says so), and 110 output tokens. */
const COSTS: Record<Case['provider'], number> = {
  anthropic: (2500 * 2 + 200 * 0.2 + 110 * 10) | 0,
  openai: 2500 * 5 + 200 * 0.5 + 110 * 30,
  google: 2500 * 1.5 + 200 * 0.15 + 110 * 9,
  // Mistral says nothing of a cache.
  mistral: 2700 * 0.5 + 110 * 1.5,
  xai: 2500 * 1.25 + 200 * 0.2 + 110 * 2.5,
  // Cached input without a price of its own costs as other input; each call is rounded up.
  deepseek: Math.ceil(1200 * 0.14 + 80 * 0.28) + Math.ceil(1500 * 0.14 + 30 * 0.28),
  boxwright: 2700 + 110 * 2,
};

function modelOf({ claim, url, fetch }: Scene): Promise<LanguageModel> {
  const { provider, model, basePath } = claim.model;
  return languageModel({ provider, model, baseUrl: url + basePath, fetch });
}

test.each([
  ['anthropic', 'messages', { mcp_servers: [{ url: 'https://x' }] }],
  ['anthropic', 'messages', { tools: [{ type: 'web_search_20250305', name: 'web_search' }] }],
  [
    'anthropic',
    'messages',
    { messages: [{ role: 'user', content: [{ type: 'image', source: { type: 'url', url: 'https://x' } }] }] },
  ],
  ['anthropic', 'messages', { container: 'c' }],
  ['openai', 'responses', { store: true }],
  ['openai', 'responses', { previous_response_id: 'resp_1' }],
  ['openai', 'responses', { background: true }],
  ['openai', 'responses', { conversation: 'c' }],
  ['openai', 'responses', { input: [{ type: 'item_reference', id: 'msg_1' }] }],
  ['openai', 'responses', { input: [{ role: 'user', content: [{ type: 'input_file', file_id: 'f' }] }] }],
  ['openai', 'responses', { input: [{ role: 'user', content: [{ type: 'input_image', image_url: 'https://x' }] }] }],
  ['openai', 'responses', { tools: [{ type: 'web_search' }] }],
  ['openai', 'responses', { tools: [{ type: 'mcp', server_url: 'https://x' }] }],
  ['xai', 'responses', { search_parameters: {} }],
  ['google', 'models/gemini-3.5-flash:generateContent', { tools: [{ googleSearch: {} }] }],
  ['google', 'models/gemini-3.5-flash:generateContent', { cachedContent: 'cachedContents/x' }],
  [
    'google',
    'models/gemini-3.5-flash:generateContent',
    { contents: [{ role: 'user', parts: [{ fileData: { fileUri: 'https://x' } }] }] },
  ],
  [
    'mistral',
    'chat/completions',
    { messages: [{ role: 'user', content: [{ type: 'document_url', document_url: 'https://x' }] }] },
  ],
  ['deepseek', 'chat/completions', { n: 50 }],
  [
    'boxwright',
    'chat/completions',
    { messages: [{ role: 'user', content: [{ type: 'image_url', image_url: { url: 'http://169.254.169.254/' } }] }] },
  ],
] as const)('%s gets no %s with %j', async (provider, path, field) => {
  const one = PROVIDER_APIS.find((known) => known.provider === provider) ?? ANTHROPIC;
  const at = await scene(one);
  await runAgent(at);
  const plain = at.vendor.requests[0]?.body ?? {};
  const post = (body: object) => at.world.post(at.gateway, `${at.claim.model.basePath}/${path}`, body, at.pod.token);

  expect((await post(plain)).status).toBe(200);
  expect(await post({ ...plain, ...field })).toMatchObject({ status: 400, json: { error: { type: 'NotPassed' } } });
  expect(at.vendor.requests).toHaveLength(2);
});

test.each([
  ['x-api-key', ANTHROPIC],
  ['x-goog-api-key', PROVIDER_APIS[2]],
] as const)('the run token is known in header %s as well, where an SDK puts its key', async (header, one) => {
  const at = await scene(one);
  await runAgent(at);

  const answer = await fetch(`${at.url}/gateway/${at.vendor.requests[0]?.path.slice(1) ?? ''}`, {
    method: 'POST',
    headers: { [header]: at.pod.token, 'content-type': 'application/json' },
    body: JSON.stringify(at.vendor.requests[0]?.body),
  });

  expect(answer.status).toBe(200);
});

test('a connection to a vendor is used again', async () => {
  const at = await scene(ANTHROPIC, [
    { calls: [{ tool: 'echo', input: { text: 'x' } }] },
    { calls: [{ tool: 'echo', input: { text: 'y' } }] },
    { text: 'Done.' },
  ]);

  await runAgent(at);

  expect(at.vendor.requests).toHaveLength(3);
  expect(at.vendor.connections).toBe(1);
});

const PATIENT = { box: { bounds: { heartbeatSeconds: 3600 } } };
const BUSY: FakeFault = { fault: 'status', status: 529, message: 'Overloaded' };

test('a vendor that is overloaded for minutes is waited for, and the status and the transcript say so', async () => {
  const answers = [...Array.from({ length: 12 }, () => BUSY), { text: 'At last.', usage: { input: 7, output: 3 } }];
  const at = await scene(ANTHROPIC, answers, PATIENT);
  const began = at.world.clock.monotonic();
  const warnings: string[] = [];
  const running = runAgent(at, { warnings });
  await letWaitsPass(at, at.vendor.received(6));
  await at.world.clock.advance(6_000);
  const why = 'anthropic answered HTTP 529: Overloaded.';
  expect(at.world.run('helper-1').status).toMatchObject({
    phase: 'running',
    reason: 'WaitingForModel',
    message: `${why} The model call is tried again.`,
  });

  expect(await letWaitsPass(at, running)).toMatchObject({ reason: 'Completed', output: 'At last.', steps: 1 });
  expect(at.world.clock.monotonic() - began).toBeGreaterThan(60_000);
  expect(at.vendor.requests).toHaveLength(13);
  expect(usageOf(at)).toMatchObject({ steps: 1, inputTokens: 7, outputTokens: 3 });
  expect(warnings).toEqual([`The model call was tried again 12 times. The last failure: ${why}`]);
  await at.world.clock.advance(6_000);
  expect(at.world.run('helper-1').status).toMatchObject({ reason: 'Working', message: '' });
});

test('a vendor that stays overloaded ends the run when the time for the call is over, with its words', async () => {
  const at = await scene(ANTHROPIC, () => BUSY, PATIENT);
  const began = at.world.clock.monotonic();

  const outcome = await letWaitsPass(at, runAgent(at));

  expect(outcome.reason).toBe('ModelError');
  expect(outcome.message).toMatch(
    /^anthropic answered HTTP 529: Overloaded\. It was tried \d+ times within 600 s \(spec\.bounds\.modelCallSeconds of the Box\)\.$/,
  );
  expect(at.world.clock.monotonic() - began).toBeGreaterThan(560_000);
  expect(usageOf(at)).toMatchObject({ inputTokens: 0, outputTokens: 0 });
});

test('a time that ran out, a lock and an early request are tried again', async () => {
  const faults = [408, 409, 425].map((status) => ({ fault: 'status' as const, status }));
  const at = await scene(ANTHROPIC, [...faults, { text: 'Now.' }]);

  expect(await letTimePass(at, runAgent(at))).toMatchObject({ reason: 'Completed', output: 'Now.' });
  expect(at.vendor.requests).toHaveLength(4);
});

test('an empty account is not waited for', async () => {
  const at = await scene(PROVIDER_APIS[1], [
    { fault: 'status', status: 429, message: 'no', code: 'insufficient_quota' },
  ]);

  expect((await runAgent(at)).message).toBe('openai answered HTTP 429: no.');
  expect(at.vendor.requests).toHaveLength(1);
});

test('a model that may not stream is asked for a whole answer', async () => {
  const at = await scene(PROVIDER_APIS[1], ({ streamed }) =>
    streamed
      ? { fault: 'status', status: 400, message: 'Your organization must be verified to stream this model.' }
      : { text: 'Whole.' },
  );

  expect(await letTimePass(at, runAgent(at))).toMatchObject({ reason: 'Completed', output: 'Whole.' });
  expect(at.vendor.requests.map(({ streamed }) => streamed)).toEqual([true, false]);
});

test('a vendor that asks for an hour of patience gets none', async () => {
  const at = await scene(ANTHROPIC, [{ fault: 'status', status: 429, message: 'Slow down.', retryAfter: '3600' }]);

  expect((await runAgent(at)).message).toBe('anthropic answered HTTP 429: Slow down. It asks to wait 3600 seconds.');
  expect(at.vendor.requests).toHaveLength(1);
});

test.each([
  ['12.5', '12.5', 12_500],
  ['a date', new Date(Date.parse('2026-01-01T00:00:30Z')).toUTCString(), 30_000],
  ['a number below 0', '-30', 0],
  ['a word', 'soon 30', 0],
])('Retry-After with %s is read as it is meant', async (_what, retryAfter, least) => {
  const at = await scene(ANTHROPIC, [{ fault: 'status', status: 503, retryAfter }, { text: 'Now.' }]);
  const began = at.world.clock.monotonic();

  expect(await letWaitsPass(at, runAgent(at))).toMatchObject({ reason: 'Completed', output: 'Now.' });
  const waited = at.world.clock.monotonic() - began;
  expect(waited).toBeGreaterThanOrEqual(least);
  expect(waited).toBeLessThan(Math.max(least + 1, 1_001));
});

test('a vendor that is not there used nothing', async () => {
  const at = await scene(ANTHROPIC, [], PATIENT);
  await at.vendor.close();

  const { reason, message } = await letWaitsPass(at, runAgent(at));
  expect(reason).toBe('ModelError');
  expect(message).toMatch(
    /^anthropic gave no answer \(\w+\)\. Check that the gateway can reach http:.* It was tried \d+ times/,
  );
  expect(usageOf(at)).toMatchObject({ inputTokens: 0, costUsd: '0.000000' });
});

test.each([
  [600, {}],
  [7, { modelCallSeconds: 7 }],
])('a call lasts %s seconds at most', async (seconds, bounds) => {
  const at = await scene(ANTHROPIC, () => ({ fault: 'hang' }), {
    box: { bounds: { heartbeatSeconds: 3600, ...bounds } },
  });
  const running = runAgent(at);
  await at.vendor.received(1);

  await at.world.clock.advance(seconds * 1000);

  expect((await running).message).toBe(
    `anthropic did not finish its answer within ${seconds} s (spec.bounds.modelCallSeconds of the Box). Ask for less at once, or raise the bound.`,
  );
});

test('a vendor that says nothing is asked once more in the middle of the time, and is charged for reading twice', async () => {
  const at = await scene(ANTHROPIC, [{ fault: 'hang' }, { text: 'Awake.', usage: { input: 120, output: 3 } }], PATIENT);
  const running = runAgent(at);
  await at.vendor.received(1);
  await at.world.clock.advance(300_000);

  expect(await letWaitsPass(at, running)).toMatchObject({ reason: 'Completed', output: 'Awake.' });
  expect(usageOf(at)).toMatchObject({ steps: 1, outputTokens: 3 });
  expect(usageOf(at)?.inputTokens).toBeGreaterThan(200);
});

test('a runner that goes away takes the vendor call with it, and what was read is charged', async () => {
  const at = await scene(ANTHROPIC, [{ fault: 'hang' }]);
  const cancel = new AbortController();
  const running = runAgent(at, { signal: cancel.signal });
  await at.vendor.received(1);
  cancel.abort();
  await running;

  while (usageOf(at)?.inputTokens === 0) await new Promise((resolve) => setImmediate(resolve));
  expect(usageOf(at)).toMatchObject({ steps: 0, outputTokens: 0 });
  while (at.vendor.requests[0]?.gone !== true) await new Promise((resolve) => setImmediate(resolve));
});

test('a run that is cancelled while an overloaded vendor is waited for pays nothing', async () => {
  const at = await scene(ANTHROPIC, [{ fault: 'status', status: 529, retryAfter: '60' }]);
  const { clock } = at.world;
  const waiting = Promise.withResolvers<void>();
  const after = clock.after.bind(clock);
  clock.after = (ms, callback) => {
    if (ms === 60_000) setImmediate(waiting.resolve);
    return after(ms, callback);
  };
  const cancel = new AbortController();
  const running = runAgent(at, { signal: cancel.signal });
  await waiting.promise;
  cancel.abort();
  await running;
  const inFlight = () => at.gateway.gateway.served.list()[0]?.call;
  while (inFlight() !== undefined) await new Promise((resolve) => setImmediate(resolve));

  expect(usageOf(at)).toMatchObject({ steps: 0, totalTokens: 0, costUsd: '0.000000' });
  expect(at.vendor.requests).toHaveLength(1);
});

test('a call in flight stands in the status after seconds, and whoever takes the run over charges it once', async () => {
  const at = await scene(ANTHROPIC, [{ fault: 'hang' }]);
  void runAgent(at);
  await at.vendor.received(1);
  await at.world.clock.advance(6_000);

  const status = at.world.run('helper-1').status;
  expect(status?.openCall).toMatchObject({ outputTokens: 0 });
  expect(status?.openCall?.inputTokens).toBeGreaterThan(50);
  const openCall = status?.openCall;
  at.world.removeGatewayPod(at.gateway.name);
  const second = at.world.startGateway();
  await at.world.call(second, at.pod, 'events', { epoch: 1, events: [] });
  await at.world.clock.advance(6_000);

  const after = at.world.run('helper-1').status;
  expect(after?.openCall).toBeUndefined();
  expect(after?.usage).toMatchObject({
    steps: 0,
    inputTokens: openCall?.inputTokens,
    outputTokens: 0,
    costUsd: openCall?.costUsd,
  });
});

test('a call that is cut because another gateway pod took the run over can be tried again there', async () => {
  const at = await scene(ANTHROPIC, [{ fault: 'hang' }]);
  const body = { model: ANTHROPIC.model, max_tokens: 100, messages: [{ role: 'user', content: 'Hi' }] };
  const cut = at.world.post(at.gateway, '/gateway/anthropic/v1/messages', body, at.pod.token);
  await at.vendor.received(1);
  at.world.removeGatewayPod(at.gateway.name);
  const second = at.world.startGateway();
  await at.world.call(second, at.pod, 'events', { epoch: 1, events: [] });

  expect(await letTimePass(at, cut)).toMatchObject({ status: 503, json: { error: { type: 'Unavailable' } } });
});

test('the Secret of the installation serves Boxes that name none', async () => {
  const at = await scene(ANTHROPIC, [], { installationSecret: true });

  expect((await runAgent(at)).reason).toBe('Completed');
});

describe('a Box that reaches a vendor at an address of its own', () => {
  async function elsewhere(options: SceneOptions) {
    const proxy = await startFakeProvider({ key: KEY, answers: [{ text: 'By the proxy.' }] });
    open.push(() => proxy.close());
    const vendors = { anthropic: { baseUrl: `${proxy.baseUrl('anthropic')}/` } };
    return { proxy, at: await scene(ANTHROPIC, [], { ...options, box: { vendors } }) };
  }

  test('goes there with its own key, whatever the installation says', async () => {
    const { proxy, at } = await elsewhere({});

    expect(await runAgent(at)).toMatchObject({ reason: 'Completed', output: 'By the proxy.' });
    expect(proxy.requests.map(({ path }) => path)).toEqual(['/anthropic/v1/messages']);
    expect(at.vendor.requests).toEqual([]);
  });

  test('never sends the key of the installation there', async () => {
    const { proxy, at } = await elsewhere({ installationSecret: true });

    const outcome = await runAgent(at);

    expect(outcome.reason).toBe('ModelNotConfigured');
    expect(outcome.message).toContain('there is no key for provider anthropic in Box lab: create a Secret');
    expect([...proxy.requests, ...at.vendor.requests]).toEqual([]);
  });
});

test('a Secret without the label is not used', async () => {
  const at = await scene(ANTHROPIC);
  at.world.api.seed(Secrets, {
    apiVersion: 'v1',
    kind: 'Secret',
    metadata: { name: 'models', namespace: NAMESPACE },
    data: { ANTHROPIC_API_KEY: Buffer.from(KEY).toString('base64') },
  });

  expect(await runAgent(at)).toMatchObject({
    reason: 'ModelNotConfigured',
    message: 'Secret models in namespace bw-lab may not be read: label it boxwright.dev/credential=true',
  });
  expect(at.vendor.requests).toEqual([]);
});

test('a model without a price has no cost, until a ConfigMap prices it', async () => {
  const one = { ...ANTHROPIC, model: 'claude-unheard-of' } as unknown as Case;
  const unpriced = await scene(one);
  await runAgent(unpriced);
  expect(usageOf(unpriced)).toEqual({ steps: 1, inputTokens: 10, outputTokens: 5, totalTokens: 15 });

  const priced = await scene(one);
  priced.world.api.seed(ConfigMaps, {
    apiVersion: 'v1',
    kind: 'ConfigMap',
    metadata: { name: 'boxwright-model-prices', namespace: RELEASE },
    data: { 'prices.yaml': 'anthropic/claude-unheard-of: { input: 100, output: 200 }' },
  });
  // The claim has read the ConfigMap already; it is read again after 30 s.
  await priced.world.clock.advance(30_000);
  await runAgent(priced);
  expect(usageOf(priced)?.costUsd).toBe('0.002000');
});

describe('under a budget', () => {
  const at = '2026-01-01T00:00:00.000Z';

  /** The run as the controller admitted it, with this grant. */
  async function granted(
    one: Case,
    granted: RunBudget['granted'],
    answers: readonly FakeAnswer[] = [],
  ): Promise<Scene> {
    const scened = await scene(one, answers, { box: { bounds: { heartbeatSeconds: 3600 } } });
    scened.world.changeRun('helper-1', { status: { budget: { at, granted } } });
    return scened;
  }

  test('a call may write no more than the grant has room for', async () => {
    const scened = await granted(ANTHROPIC, { usd: '0.100000' });

    expect((await letTimePass(scened, runAgent(scened))).reason).toBe('Completed');

    const body = scened.vendor.requests[0]?.body ?? {};
    const limit = body['max_tokens'] as number;
    const bytes = Buffer.byteLength(JSON.stringify(body));
    // What it reads costs something too.
    expect((bytes / 5) * 2.5 + limit * 10).toBeLessThanOrEqual(100_000);
    expect(limit).toBeGreaterThan(9_000);
  });

  test('too little is left: the run asks, waits for thirty seconds, and ends with BudgetExhausted', async () => {
    const scened = await granted(ANTHROPIC, { usd: '0.001000' });
    const began = scened.world.clock.monotonic();

    expect(await letTimePass(scened, runAgent(scened))).toMatchObject({
      reason: 'BudgetExhausted',
      message:
        'the budgets of agent, Box and Workspace leave too little for the next model call; this run used 0.000000 of 0.001000 US dollars that were granted',
    });
    expect(scened.world.clock.monotonic() - began).toBeGreaterThanOrEqual(30_000);
    expect(scened.world.run('helper-1').status?.budget?.wanted?.usd).toMatch(/^0\.32\d{4}$/);
    expect(scened.vendor.requests).toEqual([]);
  });

  test('more is granted: the call goes on', async () => {
    const scened = await granted(ANTHROPIC, { tokens: 10 });
    const running = runAgent(scened);
    while (scened.world.run('helper-1').status?.budget?.wanted === undefined) {
      await new Promise((resolve) => setImmediate(resolve));
    }
    const { wanted } = scened.world.run('helper-1').status?.budget ?? {};
    scened.world.changeRun('helper-1', {
      status: {
        budget: { at, granted: { tokens: 1_000_000 }, ...(wanted === undefined ? {} : { wanted, answered: wanted }) },
      },
    });

    expect((await letTimePass(scened, running)).reason).toBe('Completed');
  });

  test('a model without a price is refused under a budget of money, and passes under one of tokens', async () => {
    const one = { ...ANTHROPIC, model: 'claude-unheard-of' } as unknown as Case;

    expect(await runAgent(await granted(one, { usd: '5.000000' }))).toMatchObject({
      reason: 'ModelUnpriced',
      steps: 0,
    });
    expect(await runAgent(await granted(one, { tokens: 1_000_000 }))).toMatchObject({ reason: 'Completed' });
  });

  test('the grant on the Job stands in the status from the claim on', async () => {
    const world = new GatewayWorld();
    const gateway = world.startGateway();
    const pod = world.addRun('helper-2');
    const job = world.api.peek(Jobs, `${NAMESPACE}/helper-2`);
    if (job === undefined) throw new Error('there is no Job');
    const annotations = { 'boxwright.dev/budget': JSON.stringify({ at, tokens: 7, microUsd: 1_500_000 }) };
    world.api.seed(Jobs, { ...job, metadata: { ...job.metadata, annotations } });

    await world.claim(gateway, pod);

    expect(world.run('helper-2').status?.budget).toEqual({ at, granted: { tokens: 7, usd: '1.500000' } });
  });
});
