import { once } from 'node:events';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { Readable } from 'node:stream';
import { Agent } from 'undici';
import { FakeClock } from '../../../test/builders/fake-clock.js';
import { BodyBudget } from '../../net/body-budget.js';
import { ModelCallInFlight } from '../models/call-in-flight.js';
import { RunModel } from '../models/run-model.js';
import type { ServedRun } from '../runs/served-runs.js';
import { NO_USAGE } from '../../run/usage/usage.js';
import { ModelProxy } from './proxy.js';
import { ProviderClient } from './provider-client.js';
import { endpointProvider } from './providers.js';

const credentials = { forget: () => undefined };
const log = { warn: () => undefined, info: () => undefined };
const random = () => 0;
const bodies = new BodyBudget(1024 * 1024);

test('a call that is cut while its budget is asked for never leaves, and costs nothing', async () => {
  const clock = new FakeClock();
  const calls: string[] = [];
  const model = createServer((request) => calls.push(request.url ?? ''));
  await once(model.listen(0, '127.0.0.1'), 'listening');
  const api = endpointProvider(`http://127.0.0.1:${(model.address() as AddressInfo).port}/v1`);
  const dispatcher = new Agent();
  const client = new ProviderClient({ clock, dispatcher });
  const served = { usage: NO_USAGE } as ServedRun;
  const gone = new AbortController();
  const called = new ModelProxy({ clock, random, client, credentials, bodies, log }).call({
    target: { provider: 'boxwright', api, key: undefined, price: undefined, maxOutputTokens: undefined },
    path: 'v1/chat/completions',
    body: { model: 'own', messages: [{ role: 'user', content: 'Hello' }] },
    model: 'own',
    inFlight: new ModelCallInFlight(served, () => undefined),
    known: new RunModel('boxwright'),
    boundSeconds: 60,
    signal: gone.signal,
    sink: { start: () => undefined, write: () => Promise.resolve() },
    admit: () => {
      gone.abort();
      return Promise.resolve(undefined);
    },
    result: { value: 'refused' },
  });
  await expect(called).rejects.toMatchObject({ type: 'RunEnded' });
  expect(served.usage).toEqual(NO_USAGE);
  expect(calls).toEqual([]);
  await dispatcher.destroy();
  model.close();
});

test('an answer of type Text/Event-Stream is a stream', async () => {
  const served = { usage: NO_USAGE } as ServedRun;
  const usage = { prompt_tokens: 7, completion_tokens: 2 };
  const events = [{ choices: [{ finish_reason: 'stop', delta: {} }] }, { choices: [], usage }, '[DONE]'];
  const text = events.map((event) => `data: ${typeof event === 'string' ? event : JSON.stringify(event)}\n\n`).join('');
  const client = {
    send: async () => ({
      status: 200,
      contentType: 'Text/Event-Stream; Charset=UTF-8',
      body: Readable.from([Buffer.from(text)]),
    }),
  };
  await new ModelProxy({ clock: new FakeClock(), random, client, credentials, bodies, log }).call({
    target: {
      provider: 'boxwright',
      api: endpointProvider('http://127.0.0.1/v1'),
      key: undefined,
      price: undefined,
      maxOutputTokens: undefined,
    },
    path: 'v1/chat/completions',
    body: { model: 'own', messages: [{ role: 'user', content: 'Hello' }], stream: true },
    model: 'own',
    inFlight: new ModelCallInFlight(served, () => undefined),
    known: new RunModel('boxwright'),
    boundSeconds: 60,
    signal: new AbortController().signal,
    sink: { start: () => undefined, write: () => Promise.resolve() },
    admit: () => Promise.resolve(undefined),
    result: { value: 'refused' },
  });
  expect(served.usage).toMatchObject({ inputTokens: 7, outputTokens: 2 });
});
