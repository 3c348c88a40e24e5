/** How much of what a run and its session send is read from the vendor's prompt cache, as a server counts that keeps one. */
import { z } from 'zod';
import type { TranscriptMessage } from '../../src/protocol/run.js';
import { createAiSdkEngine } from '../../src/runner/ai-sdk-engine.js';
import type { EngineInput, EngineTool, StepRecord } from '../../src/runner/engine.js';
import { startFakeProvider, type FakeAnswer, type FakeProvider } from '../builders/fake-provider.js';

const KEY = 'run-token';
/** About 2,000 tokens. */
const RESULT = 'The quick brown fox. '.repeat(380);

const open: FakeProvider[] = [];
afterEach(async () => {
  for (const vendor of open.splice(0)) await vendor.close();
});

const read: EngineTool = {
  name: 'read',
  family: 'files',
  description: 'Reads a file.',
  input: z.object({ path: z.string() }),
  execute: ({ path }) => Promise.resolve({ isError: false, result: { path, text: RESULT } }),
};

interface Ran {
  said: TranscriptMessage[];
  steps: StepRecord[];
}

async function run(vendor: FakeProvider, provider: 'anthropic' | 'openai', input: Partial<EngineInput>): Promise<Ran> {
  const ran: Ran = { said: [], steps: [] };
  const nothing = () => Promise.resolve();
  const outcome = await createAiSdkEngine(sending).run(
    {
      provider,
      model: provider === 'anthropic' ? 'claude-sonnet-5' : 'gpt-5.5',
      baseUrl: vendor.baseUrl(provider),
      instructions: 'Be kind. '.repeat(600),
      messages: [{ role: 'user', text: 'Read all files.' }],
      tools: [read],
      stepLimit: 50,
      cacheKey: 'a-session',
      ...input,
    },
    {
      onTool: nothing,
      onMessage: (message) => Promise.resolve(void ran.said.push(message)),
      onStep: (step) => Promise.resolve(void ran.steps.push(step)),
      onWarning: nothing,
      onCompaction: nothing,
    },
    new AbortController().signal,
  );
  expect(outcome.message).not.toContain('HTTP');
  return ran;
}

const sending: typeof fetch = async (input, init) => {
  const headers = { 'x-api-key': KEY, authorization: `Bearer ${KEY}`, 'anthropic-version': '2023-06-01' };
  return await fetch(input, { ...init, headers });
};

async function start(answers: (count: number) => FakeAnswer): Promise<FakeProvider> {
  let count = 0;
  const vendor = await startFakeProvider({ key: KEY, promptCache: true, answers: () => answers((count += 1)) });
  open.push(vendor);
  return vendor;
}

function shareOf(steps: readonly StepRecord[]): number {
  const sum = (of: (step: StepRecord) => number) => steps.reduce((before, step) => before + of(step), 0);
  return sum(({ cacheReadTokens = 0 }) => cacheReadTokens) / sum(({ inputTokens }) => inputTokens);
}

describe.each(['anthropic', 'openai'] as const)('%s', (provider) => {
  test('a run of 50 steps that grows to 100,000 tokens reads 85 % of its input from the cache', async () => {
    const vendor = await start((count) =>
      count < 50 ? { calls: [{ tool: 'read', input: { path: `${count}.txt` } }] } : { text: 'Done.' },
    );

    const { steps } = await run(vendor, provider, {});

    expect(steps).toHaveLength(50);
    expect(Math.max(...steps.map(({ inputTokens }) => inputTokens))).toBeGreaterThan(100_000);
    expect(shareOf(steps)).toBeGreaterThan(0.85);
  });

  test('a step with more calls than a vendor looks back is found all the same', async () => {
    const calls = Array.from({ length: 30 }, (_, index) => ({ tool: 'read', input: { path: `${index}.txt` } }));
    const vendor = await start((count) => (count < 3 ? { calls } : { text: 'Done.' }));

    const { steps } = await run(vendor, provider, {});

    expect(steps.map(({ cacheReadTokens = 0 }) => cacheReadTokens > 0)).toEqual([false, true, true]);
    expect(steps[2]?.cacheReadTokens).toBe(steps[1]?.inputTokens);
  });

  test('the next run of a session reads what the one before it sent', async () => {
    const vendor = await start((count) =>
      count % 2 === 1 ? { text: 'I look.', calls: [{ tool: 'read', input: { path: 'a.txt' } }] } : { text: 'Done.' },
    );
    const begun: TranscriptMessage = {
      role: 'user',
      text: 'Read a.',
      frame: { before: '<run_context>\nToday.\n</run_context>\n\n', after: '' },
    };
    const first = await run(vendor, provider, { messages: [begun] });
    const stored = JSON.parse(JSON.stringify([begun, ...first.said])) as TranscriptMessage[];

    const second = await run(vendor, provider, { messages: [...stored, { role: 'user', text: 'And again.' }] });

    expect(second.steps[0]?.cacheReadTokens).toBe(first.steps[1]?.inputTokens);
  });
});

test('a request has at most four marks, and OpenAI gets the key of the session', async () => {
  const vendor = await start((count) =>
    count < 4 ? { calls: [{ tool: 'read', input: { path: 'a' } }] } : { text: 'Done.' },
  );
  await run(vendor, 'anthropic', {});
  await run(vendor, 'openai', {});

  const marks = vendor.requests.map(({ body }) => JSON.stringify(body).split('"cache_control"').length - 1);
  expect(Math.max(...marks)).toBeLessThanOrEqual(4);
  expect(vendor.requests.at(-1)?.body).toMatchObject({ prompt_cache_key: 'a-session' });
});
