/** The probe of a Box's endpoint over loopback, against a server that speaks the published protocol and checks its key. */
import { BodyBudget } from '../../src/net/body-budget.js';
import { probeEndpoint } from '../../src/gateway/endpoints/probe-endpoint.js';
import { createProviderDispatcher } from '../../src/gateway/providers/model-access.js';
import { ProviderClient } from '../../src/gateway/providers/provider-client.js';
import { systemClock } from '../../src/runtime/clock.js';
import { startFakeProvider } from '../builders/fake-provider.js';
import type { FakeAnswer, FakeProvider } from '../builders/fake-provider.js';

const KEY = 'sk-vendor-0123456789abcdef';
const dispatcher = createProviderDispatcher();
let vendor: FakeProvider;

afterEach(() => vendor.close());
afterAll(() => dispatcher.destroy());

async function probe(answer: FakeAnswer, secret = KEY) {
  vendor = await startFakeProvider({ key: KEY, answers: [answer], models: ['qwen3'] });
  const client = new ProviderClient({ clock: systemClock, dispatcher });
  const asked = { baseUrl: vendor.baseUrl('local'), model: undefined, keyIs: 'key API_KEY of Secret models', secret };
  return probeEndpoint(
    { clock: systemClock, client, bodies: new BodyBudget(8 * 1024 * 1024) },
    asked,
    new AbortController().signal,
  );
}

test('a server whose model calls tools is good; one call is made, with the key', async () => {
  const verdict = await probe({ calls: [{ tool: 'report_ready', input: { word: 'ready' } }] });
  expect(verdict.result).toBe('ToolCallsWork');
  expect(vendor.requests.map(({ method, path, body }) => [method, path, body['model']])).toEqual([
    ['POST', '/local/v1/chat/completions', 'qwen3'],
  ]);
  expect(vendor.requests[0]?.headers).toMatchObject({ authorization: `Bearer ${KEY}` });
});

test('a server that gives the call as text is found out', async () => {
  const verdict = await probe({ text: '<tool_call>{"name":"report_ready"}</tool_call>' });
  expect(verdict).toMatchObject({ result: 'NoToolCall', message: expect.stringContaining('--tool-call-parser') });
});

test('a wrong key is refused at the list, so that no call is made, and is not repeated', async () => {
  const verdict = await probe({ text: 'Hello.' }, 'sk-wrong-0123456789abcdef');
  expect(verdict.result).toBe('EndpointRefused');
  expect(verdict.message).toContain('check key API_KEY of Secret models');
  expect(verdict.message).not.toContain('sk-wrong');
  expect(vendor.requests).toEqual([]);
});
