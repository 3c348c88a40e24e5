/**
 * Models in real pods: each vendor in its own protocol and an OpenAI-compatible server, whole and streamed. What a run says
 * that it used is what the vendor says that it gave.
 */
import { jest } from '@jest/globals';
import { streamText } from 'ai';
import { languageModel, NOTHING_STORED } from '../../src/runner/model-provider.js';
import { linkFor, runToken } from './support/gateway.js';
import type { GatewayLink } from './support/gateway.js';
import { eventually, kubectlOk } from './support/install.js';
import { finishedRun } from './support/mcp.js';
import { wordsInMemory } from './support/node.js';
import { claimed, createRun, ended, requestCancel, settled, stepped } from './support/runs.js';
import { createTenant } from './support/tenant.js';
import type { Tenant } from './support/tenant.js';
import { MODELS, startProviderPod, VENDOR_KEY } from './support/vendor.js';
import type { ProviderPod } from './support/vendor.js';

jest.setTimeout(900_000);

type Model = (typeof MODELS)[number];

/** Where each vendor takes its calls. */
const PATHS: Record<Model['provider'], string> = {
  anthropic: '/anthropic/v1/messages',
  openai: '/openai/v1/responses',
  google: '/google/v1beta/models/gemini-3.5-flash:streamGenerateContent?alt=sse',
  mistral: '/mistral/v1/chat/completions',
  xai: '/xai/v1/responses',
  deepseek: '/deepseek/v1/chat/completions',
  boxwright: '/local/v1/chat/completions',
};

/** US dollars for a million: input, cached input, output. Mistral says nothing of a cache. */
const PRICES: Record<Model['provider'], [number, number, number]> = {
  anthropic: [2, 0.2, 10],
  openai: [5, 0.5, 30],
  google: [1.5, 0.15, 9],
  mistral: [0.5, 0.5, 1.5],
  xai: [1.25, 0.2, 2.5],
  deepseek: [0.14, 0.14, 0.28],
  boxwright: [1, 1, 2],
};

interface Used {
  input: number;
  output: number;
  cached?: number;
}

/** In micro-USD; each call is rounded up. */
function costOf(provider: Model['provider'], calls: readonly Used[]): number {
  const [input, cached, output] = PRICES[provider];
  return calls.reduce((sum, call) => {
    const fromCache = call.cached ?? 0;
    const exact = (call.input - fromCache) * input + fromCache * cached + call.output * output;
    return sum + Math.ceil(Number(exact.toFixed(6)));
  }, 0);
}

function usageOf(provider: Model['provider'], calls: readonly Used[]) {
  const inputTokens = calls.reduce((sum, call) => sum + call.input, 0);
  const outputTokens = calls.reduce((sum, call) => sum + call.output, 0);
  const cost = costOf(provider, calls);
  const saysCached = provider !== 'mistral' && provider !== 'boxwright';
  const cacheReadTokens = saysCached ? calls.reduce((sum, { cached = 0 }) => sum + cached, 0) : 0;
  return {
    steps: calls.length,
    inputTokens,
    ...(cacheReadTokens === 0 ? {} : { cacheReadTokens }),
    outputTokens,
    totalTokens: inputTokens + outputTokens,
    costUsd: `${Math.floor(cost / 1e6)}.${String(cost % 1e6).padStart(6, '0')}`,
  };
}

describe('models of vendors', () => {
  let vendors: ProviderPod;
  let tenant: Tenant;

  beforeAll(async () => {
    vendors = await startProviderPod('e2e-vendors');
    const resources = { memory: '64Mi', cpu: '200m' };
    tenant = await createTenant('e2e-vendors', { box: { ...vendors.box, resources } });
    await vendors.giveKeys(tenant);
    for (const { provider, model } of MODELS) await tenant.agent(`on-${provider}`, { provider, model });
  });

  afterAll(async () => {
    await tenant.remove();
    await vendors.remove();
  });

  test('an agent works through its tools on each of them, and tokens and cost are those of the vendor', async () => {
    const first = { input: 1200, output: 80, cached: 200 };
    const second = { input: 1500, output: 30 };
    const name = ({ provider }: Model) => `whole-${provider}`;
    for (const one of MODELS) {
      await vendors.script(
        name(one),
        { text: 'I look.', calls: [{ tool: 'shell', input: { command: 'echo from a pod' } }], usage: first },
        { text: `Done by ${one.provider}.`, usage: second },
      );
      await createRun(tenant, `on-${one.provider}`, `Look around. [case:${name(one)}]`, name(one));
    }

    for (const one of MODELS) {
      const { provider, model } = one;
      const run = await ended(tenant, name(one));
      expect(run.status).toMatchObject({
        phase: 'done',
        reason: 'Completed',
        output: `Done by ${provider}.`,
        provider,
        model,
        usageFinal: true,
      });
      const seen = await vendors.seen(name(one));
      expect(seen.map(({ path }) => path)).toEqual([PATHS[provider], PATHS[provider]]);
      expect(seen.map(({ given }) => given)).toEqual([first, second]);
      // What each of them says about its cache is in its own usage.
      const counted = provider === 'mistral' || provider === 'boxwright' ? { input: 1200, output: 80 } : first;
      expect({ provider, usage: run.status?.usage }).toEqual({ provider, usage: usageOf(provider, [counted, second]) });
      const { toolCalls } = await finishedRun(tenant.apiKey, tenant.agentId(`on-${provider}`), name(one));
      expect(toolCalls).toEqual([expect.objectContaining({ step: 1, tool: 'shell', isError: false })]);
      expect(toolCalls?.[0]?.result).toContain('from a pod');
    }
  });

  test('the vendor sees its key and never a run token; nothing of the run shows the key', async () => {
    const run = await kubectlOk(['get', 'agentrun,job,pod', '-n', tenant.namespace, '-o', 'yaml']);
    expect(run).not.toContain(VENDOR_KEY);
    for (const { provider } of MODELS) {
      for (const { headers } of await vendors.seen(`whole-${provider}`)) {
        expect(JSON.stringify(headers)).toContain(VENDOR_KEY);
        expect(JSON.stringify(headers)).not.toContain('eyJ');
      }
    }
  });

  test('no key of a vendor is in the pod of a run: not in its memory, environment, files or mounts', async () => {
    const look = 'env; cat /proc/mounts; grep -rl sk-vendor- /workspace /home /tmp /var/run /dev/shm 2>&1';
    const shell = (command: string) => ({ calls: [{ tool: 'shell', input: { command } }] });
    await vendors.script('searched', shell(look), shell('sleep 280; echo in-tools'), { text: 'Never.' });
    await createRun(tenant, 'on-anthropic', 'Look for it. [case:searched]', 'searched');
    const { status } = await claimed(tenant, 'searched');
    await eventually('the second tool call works', async () => {
      const seen = await vendors.seen('searched');
      return seen.filter(({ given }) => given !== undefined).length === 2;
    });

    const words = [VENDOR_KEY, '[case:searched]', 'in-tools'];
    const inMemory = async (container: string) =>
      (await wordsInMemory(tenant.namespace, status?.claim?.podName ?? '', container, words)).sort();
    expect(await inMemory('runner')).toEqual(['[case:searched]', 'in-tools']);
    expect(await inMemory('tools')).toEqual(['in-tools']);

    await requestCancel(tenant, 'searched');
    await ended(tenant, 'searched');
    const run = await finishedRun(tenant.apiKey, tenant.agentId('on-anthropic'), 'searched');
    expect(run.toolCalls?.[0]?.result).toContain('HOME=/home/agent');
    expect(JSON.stringify(run.toolCalls?.[0]?.result)).not.toContain('sk-vendor-');
  });

  test('answers that the caller streams go through the gateway and are counted with the others; cancelling keeps the sum', async () => {
    const first = { input: 700, output: 40 };
    const streamed = { input: 100, output: 20 };
    const name = ({ provider }: Model) => `streamed-${provider}`;
    for (const one of MODELS) {
      await vendors.script(
        name(one),
        {
          text: 'I wait.',
          calls: [{ tool: 'shell', input: { command: 'sleep 240', timeoutSeconds: 600 } }],
          usage: first,
        },
        { text: 'Streamed.', usage: streamed },
      );
      await createRun(tenant, `on-${one.provider}`, `Wait. [case:${name(one)}]`, name(one));
    }

    for (const one of MODELS) {
      // One call in flight a run: the first one is over when it is counted.
      const run = await stepped(tenant, name(one));
      const link = await linkFor(run);
      const fetch = throughGateway(link, await runToken(tenant.namespace, run));
      const version = one.provider === 'google' ? 'v1beta' : 'v1';
      const baseUrl = `https://gateway/gateway/${one.provider}/${version}`;
      const result = streamText({
        model: await languageModel({ provider: one.provider, model: one.model, baseUrl, fetch }),
        prompt: `[case:${name(one)}]`,
        maxRetries: 0,
        providerOptions: NOTHING_STORED,
      });
      expect({ provider: one.provider, text: await result.text }).toEqual({
        provider: one.provider,
        text: 'Streamed.',
      });
      await link.close();
      await requestCancel(tenant, name(one));
    }

    for (const one of MODELS) {
      const run = await settled(tenant, name(one));
      expect(run.status).toMatchObject({ phase: 'cancelled', reason: 'Cancelled' });
      expect((await vendors.seen(name(one))).map((seen) => seen.streamed)).toEqual([true, true]);
      expect(run.status?.usage).toEqual(usageOf(one.provider, [first, streamed]));
    }
  });
});

/** As the runner's own: the run token takes the place of the key, and only the path of the address counts. */
function throughGateway(link: GatewayLink, token: string): typeof globalThis.fetch {
  return async (input, init) => {
    const url = new URL(input instanceof Request ? input.url : input);
    const reply = await link.post(url.pathname + url.search, token, init?.body);
    const type = String(reply.headers['content-type'] ?? '');
    return new Response(reply.text, { status: reply.status, headers: { 'content-type': type } });
  };
}
