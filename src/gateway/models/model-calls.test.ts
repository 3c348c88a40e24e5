import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { createOpenAICompatible } from '@ai-sdk/openai-compatible';
import { generateText, isStepCount, streamText, tool } from 'ai';
import { z } from 'zod';
import { GatewayWorld, type GatewayPod, type RunPod, type WorldOptions } from '../../../test/builders/gateway-world.js';

async function claimed(options: WorldOptions = {}) {
  const world = new GatewayWorld(options);
  const gateway = world.startGateway();
  const pod = world.addRun('helper-1', { limits: { stepLimit: 3 } });
  await world.claim(gateway, pod);
  return { world, gateway, pod };
}

function say(text: string, more: Record<string, unknown> = {}) {
  return { model: 'scripted', messages: [{ role: 'user', content: text }], ...more };
}

test('an answer has the form of the OpenAI API', async () => {
  const { world, gateway, pod } = await claimed();

  expect((await world.chat(gateway, pod, say('/say hello'))).json).toEqual({
    id: 'chatcmpl-helper-1-1',
    object: 'chat.completion',
    created: 1767225600,
    model: 'scripted',
    choices: [{ index: 0, message: { role: 'assistant', content: 'hello' }, finish_reason: 'stop' }],
    usage: { prompt_tokens: 3, completion_tokens: 2, total_tokens: 5 },
  });
});

test('a streamed answer is the same in pieces, with usage when asked for', async () => {
  const { world, gateway, pod } = await claimed();

  const reply = await world.chat(
    gateway,
    pod,
    say('/say hello', { stream: true, stream_options: { include_usage: true } }),
  );

  expect(reply.headers['content-type']).toBe('text/event-stream');
  const data = reply.text.split('\n\n').filter((line) => line !== '');
  expect(data.at(-1)).toBe('data: [DONE]');
  const chunks = data.slice(0, -1).map((line) => JSON.parse(line.slice('data: '.length)) as Record<string, unknown>);
  expect(chunks.map((chunk) => chunk['choices'])).toEqual([
    [{ index: 0, delta: { role: 'assistant', content: '' }, finish_reason: null }],
    [{ index: 0, delta: { content: 'hello' }, finish_reason: null }],
    [{ index: 0, delta: {}, finish_reason: 'stop' }],
    [],
  ]);
  expect(chunks.at(-1)?.['usage']).toEqual({ prompt_tokens: 3, completion_tokens: 2, total_tokens: 5 });
});

test('a Box without an engine answers what to set', async () => {
  const { world, gateway, pod } = await claimed({ box: { engine: undefined } });

  expect(await world.chat(gateway, pod, say('hi'))).toMatchObject({
    status: 400,
    json: {
      error: {
        type: 'ModelNotConfigured',
        message:
          'nothing stands behind provider boxwright in Box lab: set spec.engine: scripted on Box lab, which needs no key, or spec.endpoint, and provider boxwright on the agent',
      },
    },
  });
});

test('a provider without a key answers where to put one', async () => {
  const { world, gateway, pod } = await claimed({ agent: { provider: 'anthropic', model: 'claude' } });

  const reply = await world.post(gateway, '/gateway/anthropic/v1/messages', {}, pod.token);

  expect(reply).toMatchObject({
    status: 400,
    json: {
      error: {
        type: 'ModelNotConfigured',
        message:
          'there is no key for provider anthropic in Box lab: create a Secret with key ANTHROPIC_API_KEY in namespace bw-lab, label it boxwright.dev/credential=true and name it in spec.credentialsSecret of the Box',
      },
    },
  });
});

test('a run reaches no other provider than its own', async () => {
  const { world, gateway, pod } = await claimed();

  const reply = await world.post(gateway, '/gateway/anthropic/v1/messages', {}, pod.token);

  expect(reply).toMatchObject({ status: 400, json: { error: { type: 'ModelNotConfigured' } } });
  expect(JSON.stringify(reply.json)).toContain('provider anthropic is not available in this installation');
});

test('the step limit is kept here and not only in the pod', async () => {
  const { world, gateway, pod } = await claimed();
  for (let i = 0; i < 3; i++) expect((await world.chat(gateway, pod, say('hi'))).status).toBe(200);

  expect(await world.chat(gateway, pod, say('hi'))).toMatchObject({
    status: 400,
    json: { error: { type: 'StepLimitReached', message: 'the run has used all 3 steps of its limit' } },
  });
});

test('one call of a run is in flight at a time; a failed or waiting call counts no step', async () => {
  const { world, gateway, pod } = await claimed();

  const waiting = world.chat(gateway, pod, say('/wait 5s\n/say late'));
  await world.clock.advance(1_000);
  const second = await world.chat(gateway, pod, say('hi'));
  await world.clock.advance(4_000);

  expect(second).toMatchObject({ status: 429, headers: { 'retry-after': '1' } });
  expect((await waiting).status).toBe(200);
  expect(await world.chat(gateway, pod, say('/fail no luck'))).toMatchObject({
    status: 400,
    json: { error: { type: 'ScriptedFailure', message: 'no luck' } },
  });
  expect(gateway.gateway.served.list()[0]?.usage.steps).toBe(1);
});

test('a call of the scripted engine keeps to the bound of the Box too', async () => {
  const { world, gateway, pod } = await claimed({ box: { bounds: { modelCallSeconds: 7 } } });
  const waiting = world.chat(gateway, pod, say('/wait 60s\n/say late'));
  await world.clock.advance(7_000);

  expect(await waiting).toMatchObject({
    status: 400,
    json: {
      error: {
        type: 'ModelError',
        message:
          'boxwright did not finish its answer within 7 s (spec.bounds.modelCallSeconds of the Box). Ask for less at once, or raise the bound.',
      },
    },
  });
});

test('a call is cut when its run ends', async () => {
  const { world, gateway, pod } = await claimed();
  const waiting = world.chat(gateway, pod, say('/wait 60s\n/say late'));
  await world.clock.advance(1_000);

  const outcome = { reason: 'Cancelled', message: '', output: null };
  await world.call(gateway, pod, 'finish', { epoch: 1, events: [], outcome });

  expect((await waiting).status).toBe(410);
  expect(world.run('helper-1').status).toMatchObject({ phase: 'cancelled', usage: { steps: 0 } });
});

test('a run that is not claimed makes no call', async () => {
  const world = new GatewayWorld();
  const gateway = world.startGateway();
  const pod = world.addRun('helper-1');

  expect((await world.chat(gateway, pod, say('hi'))).status).toBe(409);
});

test('calls are counted by provider and result', async () => {
  const { world, gateway, pod } = await claimed();
  await world.chat(gateway, pod, say('hi'));
  await world.chat(gateway, pod, say('/fail x'));
  await world.chat(gateway, pod, { model: 'scripted' });

  const text = await gateway.registry.getSingleMetricAsString('boxwright_gateway_model_calls_total');
  expect(text).toContain('{provider="boxwright",result="answered"} 1');
  expect(text).toContain('{provider="boxwright",result="failed"} 1');
  expect(text).toContain('{provider="boxwright",result="refused"} 1');
  const used = await gateway.registry.getSingleMetricAsString('boxwright_gateway_model_tokens_total');
  expect(used).toContain(`{provider="boxwright",model="other",kind="input"} 1`);
  expect(used).toContain(`{provider="boxwright",model="other",kind="output"} 104`);
});

describe('with the real SDK over loopback', () => {
  const shell = tool({
    inputSchema: z.object({ command: z.string() }),
    execute: ({ command }) => ({ output: `ran ${command}` }),
  });
  const prompt = '/say first\n/shell ls\n/say all done';

  async function withModel(
    work: (model: ReturnType<ReturnType<typeof createOpenAICompatible>['chatModel']>) => Promise<void>,
  ) {
    const { gateway, pod } = await claimed();
    const server = await listen(gateway);
    try {
      await work(modelAt(server, pod));
    } finally {
      server.closeAllConnections();
      await new Promise((resolve) => server.close(resolve));
    }
  }

  test('generateText goes through the whole loop', () =>
    withModel(async (model) => {
      const result = await generateText({ model, prompt, tools: { shell }, stopWhen: isStepCount(5), maxRetries: 0 });

      expect(result.text).toBe('all done');
      expect(result.steps.map((step) => [step.text, step.toolCalls.map(({ input }) => input)])).toEqual([
        ['first', [{ command: 'ls' }]],
        ['all done', []],
      ]);
      expect(result.steps[0]?.usage).toMatchObject({ inputTokens: 9, outputTokens: 7 });
    }));

  test('streamText does as well', () =>
    withModel(async (model) => {
      const result = streamText({ model, prompt, tools: { shell }, stopWhen: isStepCount(5), maxRetries: 0 });

      expect(await result.text).toBe('all done');
      expect((await result.steps)[0]?.toolResults[0]?.output).toEqual({ output: 'ran ls' });
      expect((await result.steps)[0]?.usage).toMatchObject({ inputTokens: 9, outputTokens: 7 });
    }));

  function listen(gateway: GatewayPod) {
    const server = createServer((request, response) => void gateway.gateway.handler.handle(request, response));
    return new Promise<typeof server>((resolve) => server.listen(0, '127.0.0.1', () => resolve(server)));
  }

  function modelAt(server: Awaited<ReturnType<typeof listen>>, pod: RunPod) {
    const { port } = server.address() as AddressInfo;
    return createOpenAICompatible({
      name: 'boxwright',
      baseURL: `http://127.0.0.1:${port}/gateway/boxwright/v1`,
      apiKey: pod.token,
      includeUsage: true,
    }).chatModel('scripted');
  }
});
