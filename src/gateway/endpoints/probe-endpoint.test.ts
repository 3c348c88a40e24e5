import { Readable } from 'node:stream';
import { FakeClock } from '../../../test/builders/fake-clock.js';
import { BODY_BASE_BYTES, BodyBudget } from '../../net/body-budget.js';
import { ProviderUnreachable } from '../providers/provider-client.js';
import type { ProviderRequest, ProviderResponse } from '../providers/provider-client.js';
import { PROBE_BOUND_MS, probeEndpoint } from './probe-endpoint.js';

const BASE = 'http://vllm:8000/v1';
const KEY = 'abc-0123456789';
const ASKED = { baseUrl: BASE, model: undefined, keyIs: 'key API_KEY of Secret models', secret: KEY };
const stopping = new AbortController().signal;
const bodies = new BodyBudget(8 * 1024 * 1024);

const LISTED = { status: 200, body: { data: [{ id: 'qwen3' }, { id: 'other' }] } };
const called = (name: string, args: string) => ({
  status: 200,
  body: { choices: [{ message: { tool_calls: [{ function: { name, arguments: args } }] } }] },
});
const GOOD = called('report_ready', '{"word":"ready"}');
const said = (content: unknown) => ({ status: 200, body: { choices: [{ message: { content } }] } });
const failed = (status: number, message = 'no') => ({ status, body: { error: { message } } });

type Reply = { status: number; body: object | string } | Error;

/** A server that answers the two requests in this way. */
function server(...replies: Reply[]) {
  const requests: ProviderRequest[] = [];
  const send = (request: ProviderRequest): Promise<ProviderResponse> => {
    const reply = replies[requests.length];
    requests.push(request);
    if (reply === undefined) throw new Error(`nobody expected ${request.url}`);
    if (reply instanceof Error) return Promise.reject(reply);
    const text = typeof reply.body === 'string' ? reply.body : JSON.stringify(reply.body);
    return Promise.resolve({ status: reply.status, contentType: '', body: Readable.from([Buffer.from(text)]) });
  };
  return { client: { sendPatiently: send }, requests };
}

test('lists the models with the key, then asks the first of them for a call of a tool, as runs do', async () => {
  const { client, requests } = server(LISTED, GOOD);
  const verdict = await probeEndpoint({ clock: new FakeClock(), client, bodies }, ASKED, stopping);
  expect(verdict).toEqual({
    result: 'ToolCallsWork',
    message: `model qwen3 at ${BASE} answered with a call of a tool, as agents need it`,
  });
  expect(requests.map(({ url, headers }) => [url, headers])).toEqual([
    [`${BASE}/models`, { authorization: `Bearer ${KEY}` }],
    [`${BASE}/chat/completions`, { authorization: `Bearer ${KEY}` }],
  ]);
  expect(requests[0]?.body).toBeUndefined();
  const body = JSON.parse(requests[1]?.body ?? '') as Record<string, unknown>;
  expect(body).toMatchObject({ model: 'qwen3', tool_choice: 'auto', stream: false });
  // Some servers refuse these, and runs do not send them by themselves.
  expect(Object.keys(body).sort()).toEqual(['messages', 'model', 'stream', 'tool_choice', 'tools']);
});

test('a server without a list is fine when the Box names the model, and needs no key when it wants none', async () => {
  const { client, requests } = server(failed(404), GOOD);
  const asked = { baseUrl: BASE, model: 'mine', keyIs: undefined, secret: '' };
  const verdict = await probeEndpoint({ clock: new FakeClock(), client, bodies }, asked, stopping);
  expect(verdict.result).toBe('ToolCallsWork');
  expect(requests.map(({ headers }) => headers)).toEqual([{}, {}]);
});

const WITHOUT_PARSER = '"auto" tool choice requires --enable-auto-tool-choice and --tool-call-parser to be set';

test.each<[string, Reply[], object, string, string]>([
  [
    'no answer',
    [new ProviderUnreachable('ECONNREFUSED', false)],
    {},
    'EndpointUnavailable',
    'no answer (ECONNREFUSED)',
  ],
  ['busy', [failed(503, 'loading')], {}, 'EndpointUnavailable', '/models answered HTTP 503 (loading)'],
  ['broken', [failed(500)], {}, 'EndpointUnavailable', 'HTTP 500'],
  ['busy at the call', [LISTED, failed(429)], {}, 'EndpointUnavailable', '/chat/completions answered HTTP 429'],
  ['a page', [LISTED, { status: 200, body: '<html>' }], {}, 'EndpointUnavailable', 'something that is not JSON'],
  ['a wrong key', [failed(401, `bad ${KEY}`)], {}, 'EndpointRefused', '(bad [redacted]); check key API_KEY of Secret'],
  ['no key', [failed(401)], { keyIs: undefined, secret: '' }, 'EndpointRefused', 'set spec.endpoint.secretRef'],
  ['a key for lists alone', [LISTED, failed(403)], {}, 'EndpointRefused', '/chat/completions answered HTTP 403'],
  ['no list, no model', [failed(404)], {}, 'ModelNotFound', 'name one in spec.endpoint.model'],
  ['an empty list', [{ status: 200, body: { data: [] } }], {}, 'ModelNotFound', '/models lists no model: name one'],
  [
    'another model',
    [LISTED, failed(404, 'no gpt')],
    { model: 'gpt' },
    'ModelNotFound',
    'HTTP 404 (no gpt) for model gpt: check spec.endpoint.baseUrl, which ends with its version, such as /v1, and spec.endpoint.model. It lists qwen3, other.',
  ],
  ['a redirect', [LISTED, { status: 301, body: '' }], {}, 'ModelNotFound', 'check spec.endpoint.baseUrl'],
  ['vLLM without its parser', [LISTED, failed(400, WITHOUT_PARSER)], {}, 'ToolCallsRefused', WITHOUT_PARSER],
  [
    'llama-server without its templates',
    [LISTED, failed(500, 'tools param requires --jinja flag')],
    {},
    'ToolCallsRefused',
    'requires --jinja flag); the request had a tool, as those of agents have. Tools need --enable-auto-tool-choice',
  ],
  [
    'the call as text',
    [LISTED, said('<tool_call>{"name": "report_ready"}</tool_call>')],
    {},
    'NoToolCall',
    'model qwen3 at http://vllm:8000/v1 answered in words instead of calling the tool: "<tool_call>{"name": "report_ready"}</tool_call>". Tools need',
  ],
  ['nothing', [LISTED, said(null)], {}, 'NoToolCall', 'instead of calling the tool. Tools need'],
  ['another shape', [LISTED, { status: 200, body: { choices: 'many' } }], {}, 'NoToolCall', 'in words'],
  ['another tool', [LISTED, called('search', '{}')], {}, 'NoToolCall', 'arguments or a name that nobody gave it'],
  ['broken arguments', [LISTED, called('report_ready', '{"word":')], {}, 'NoToolCall', 'arguments or a name'],
])('tells %s', async (_what, replies, asked, result, text) => {
  const { client, requests } = server(...replies);
  const verdict = await probeEndpoint({ clock: new FakeClock(), client, bodies }, { ...ASKED, ...asked }, stopping);
  expect(verdict.result).toBe(result);
  expect(verdict.message).toContain(text);
  expect(verdict.message).not.toContain(KEY);
  expect(requests).toHaveLength(replies.length);
});

test('an answer that never comes ends after two minutes; a stop ends the probe without a verdict', async () => {
  const clock = new FakeClock();
  const client = {
    sendPatiently: ({ signal }: ProviderRequest) =>
      new Promise<ProviderResponse>((_resolve, reject) => {
        signal.addEventListener('abort', () => reject(new ProviderUnreachable('UND_ERR_ABORTED', true)));
      }),
  };
  const slow = probeEndpoint({ clock, client, bodies }, ASKED, stopping);
  await clock.advance(PROBE_BOUND_MS);
  expect(await slow).toMatchObject({ result: 'EndpointUnavailable', message: expect.stringContaining('within 120 s') });

  const stop = new AbortController();
  const stopped = probeEndpoint({ clock, client, bodies }, ASKED, stop.signal);
  stop.abort(new Error('stopping'));
  await expect(stopped).rejects.toThrow('stopping');
});

test('an answer that comes slowly makes room for others, and is tried again', async () => {
  const full = new BodyBudget(2 * BODY_BASE_BYTES);
  const body = new Readable({ read: () => undefined });
  const client = { sendPatiently: () => Promise.resolve({ status: 200, contentType: '', body }) };
  const probe = probeEndpoint({ clock: new FakeClock(), client, bodies: full }, ASKED, stopping);
  await new Promise((resolve) => setImmediate(resolve));
  expect(full.bytes).toBe(BODY_BASE_BYTES);

  full.open('other', () => undefined).holds(BODY_BASE_BYTES / 2);
  full.open('other', () => undefined);
  full.open(BASE, () => undefined);

  expect(await probe).toMatchObject({ result: 'EndpointUnavailable' });
  expect(body.destroyed).toBe(true);
});
