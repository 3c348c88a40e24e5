/** web_search through the real gateway, against a server that answers as the documents of Brave, Tavily and SearXNG say. */
import { createServer, type IncomingMessage, type Server, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { Secrets } from '../../src/kube/core-types.js';
import { runPath } from '../../src/protocol/run.js';
import { NAMESPACE, RELEASE, GatewayWorld, type GatewayPod, type RunPod } from '../builders/gateway-world.js';
import { PodWorld } from '../builders/pod-world.js';
import { temporaryDirectories } from '../builders/workspace.js';

const KEY = 'key-of-the-operator';
const temporary = temporaryDirectories();

interface Asked {
  method: string;
  path: string;
  query: Record<string, string>;
  key: string | undefined;
  body: unknown;
}

interface Answer {
  status?: number;
  body?: string;
  headers?: Record<string, string>;
}

let server: Server;
let asked: Asked[];
/** What the engine answers next; a page of hits when there is none. */
let answers: Answer[];

const BRAVE = {
  web: { results: [{ title: 'Mills', url: 'https://a.example/mills', description: 'All &amp; more.' }] },
};
const OTHERS = { results: [{ title: 'Mills', url: 'https://a.example/mills', content: 'All & more.', score: 0.9 }] };
const FOUND = { results: '1. Mills\nhttps://a.example/mills\nAll & more.' };

async function bodyOf(request: IncomingMessage): Promise<unknown> {
  const parts: Buffer[] = [];
  for await (const part of request) parts.push(part as Buffer);
  return parts.length === 0 ? undefined : (JSON.parse(Buffer.concat(parts).toString()) as unknown);
}

beforeEach(async () => {
  asked = [];
  answers = [];
  const answer = async (request: IncomingMessage, response: ServerResponse): Promise<void> => {
    const { pathname, searchParams } = new URL(request.url ?? '', 'http://x');
    const token = request.headers['x-subscription-token'] ?? request.headers.authorization;
    asked.push({
      method: request.method ?? '',
      path: pathname,
      query: Object.fromEntries(searchParams),
      key: token as string | undefined,
      body: await bodyOf(request),
    });
    const { status = 200, body, headers = {} } = answers.shift() ?? {};
    response.writeHead(status, { 'content-type': 'application/json', ...headers });
    response.end(body ?? JSON.stringify(pathname === '/web/search' ? BRAVE : OTHERS));
  };
  server = createServer((request, response) => void answer(request, response));
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
});

let world: GatewayWorld;
let gateway: GatewayPod;
afterEach(async () => {
  await world.dispatcher.destroy();
  server.closeAllConnections();
  await new Promise((resolve) => server.close(resolve));
});

const baseUrl = () => `http://127.0.0.1:${(server.address() as AddressInfo).port}`;

function start(engine: string, more: { searchesPerRun?: number; agent?: object; key?: string } = {}): void {
  const { agent = {}, key = KEY, ...rest } = more;
  world = new GatewayWorld({
    box: { credentialsSecret: 'models', webSearch: { engine, baseUrl: baseUrl(), ...rest } },
    agent: agent as Record<string, unknown>,
  });
  setKey(key);
  gateway = world.startGateway();
}

function setKey(key: string): void {
  const data = Buffer.from(key).toString('base64');
  world.api.seed(Secrets, {
    apiVersion: 'v1',
    kind: 'Secret',
    metadata: { namespace: NAMESPACE, name: 'models', labels: { 'boxwright.dev/credential': 'true' } },
    data: { BRAVE_API_KEY: data, TAVILY_API_KEY: data },
  });
}

async function claimed(name = 'helper-1'): Promise<{ pod: RunPod; tools: string[]; text: string }> {
  const pod = world.addRun(name);
  const { json, text } = await world.claim(gateway, pod);
  return { pod, tools: (json['abilities'] as { tools: string[] }).tools, text };
}

async function search(pod: RunPod, call = 1, input: object = { query: 'mills' }, token = pod.token) {
  const body = { epoch: 1, call, tool: 'web_search', input };
  const { status, json } = await world.post(gateway, runPath(pod.namespace, pod.run, 'tool'), body, token);
  return { status, result: json['result'], isError: json['isError'] };
}

test.each([
  [
    'brave',
    {
      method: 'GET',
      path: '/web/search',
      query: { q: 'mills', count: '8', text_decorations: 'false' },
      key: KEY,
      body: undefined,
    },
  ],
  [
    'tavily',
    {
      method: 'POST',
      path: '/search',
      query: {},
      key: `Bearer ${KEY}`,
      body: { query: 'mills', max_results: 8, search_depth: 'basic' },
    },
  ],
  [
    'searxng',
    { method: 'GET', path: '/search', query: { q: 'mills', format: 'json' }, key: undefined, body: undefined },
  ],
])('%s is asked with its key, and the run gets text', async (engine, request) => {
  start(engine);
  const { pod, tools, text } = await claimed();
  expect(tools).toContain('web_search');
  expect(text).not.toContain(KEY);
  expect(await search(pod)).toEqual({ status: 200, isError: false, result: FOUND });
  expect(asked).toEqual([request]);
  expect(await gateway.registry.metrics()).toContain(
    `boxwright_gateway_web_searches_total{engine="${engine}",result="answered"} 1`,
  );
});

test('a repeated call is not a second search, and a token of another run searches nothing', async () => {
  start('brave');
  const { pod } = await claimed();
  const { pod: other } = await claimed('helper-2');
  expect(await search(pod)).toEqual(await search(pod));
  expect((await search(pod, 2, { query: 'x' }, other.token)).status).toBe(403);
  expect(asked).toHaveLength(1);
});

test.each([
  ['without a search engine', { box: {} }],
  ['whose Box wants none', { box: { webSearch: { engine: 'none' } } }],
  [
    'without the family web',
    { box: { webSearch: { engine: 'searxng', baseUrl: 'http://s.example' } }, agent: { tools: { web: false } } },
  ],
])('an agent %s is not offered the tool, and cannot call it', async (_case, options) => {
  world = new GatewayWorld(options);
  gateway = world.startGateway();
  const { pod, tools } = await claimed();
  expect(tools).not.toContain('web_search');
  expect(await search(pod)).toMatchObject({
    isError: true,
    result: { error: expect.stringContaining('is not there') },
  });
});

test('the search of the installation serves a Box with a network, with the key of the installation', async () => {
  world = new GatewayWorld({
    box: { egress: { mode: 'internet' } },
    models: { modelCredentialsSecret: 'keys', webSearchEngine: 'brave', webSearchBaseUrl: baseUrl() },
  });
  const data = { BRAVE_API_KEY: Buffer.from(KEY).toString('base64') };
  world.api.seed(Secrets, { apiVersion: 'v1', kind: 'Secret', metadata: { namespace: RELEASE, name: 'keys' }, data });
  gateway = world.startGateway();
  const { pod } = await claimed();
  expect(await search(pod)).toMatchObject({ isError: false, result: FOUND });
  expect(asked[0]?.key).toBe(KEY);
});

test('a run has so many searches; failed ones count', async () => {
  start('searxng', { searchesPerRun: 2 });
  const { pod } = await claimed();
  answers = [{ status: 400 }];
  expect((await search(pod, 1)).isError).toBe(true);
  expect((await search(pod, 2)).isError).toBe(false);
  expect((await search(pod, 3)).result).toEqual({
    error: 'this run has used all 2 searches of its limit: work with what you have',
  });
  const { pod: next } = await claimed('helper-2');
  expect((await search(next, 1)).isError).toBe(false);
  expect(asked).toHaveLength(3);
});

test.each([
  ['brave', { status: 401 }, 'Brave Search refused the search (HTTP 401): an operator must look at its key'],
  ['brave', { status: 422 }, 'Brave Search refused the search (HTTP 422): it does not take this query, or its key'],
  [
    'brave',
    { status: 429, headers: { 'retry-after': '60' } },
    'Brave Search refused the search (HTTP 429): no more searches for now: go on without, or try again later',
  ],
  ['tavily', { status: 432 }, 'Tavily refused the search (HTTP 432): the searches of its plan are used up'],
  [
    'searxng',
    { status: 403 },
    'SearXNG refused the search (HTTP 403): the operator must allow the format json in its settings',
  ],
  [
    'searxng',
    { status: 503, headers: { 'retry-after': '60' } },
    'SearXNG refused the search (HTTP 503): it does not work now: go on without, or try again later',
  ],
  ['searxng', { body: '<html>' }, 'SearXNG gave an answer that cannot be read: go on without, or try again later'],
  [
    'brave',
    { body: '{"web":{"results":"x"}}' },
    'Brave Search gave an answer that cannot be read: go on without, or try again later',
  ],
  [
    'tavily',
    { body: ' '.repeat(2 * 1024 * 1024 + 1) },
    'Tavily gave an answer that cannot be read: go on without, or try again later',
  ],
])('%s with %j is an error in plain words', async (engine, answer: Answer, error) => {
  start(engine);
  answers = [{ body: JSON.stringify({ error: `you sent ${KEY}` }), ...answer }];
  const { pod } = await claimed();
  expect(await search(pod)).toEqual({ status: 200, isError: true, result: { error } });
  expect(gateway.logs.join('')).not.toContain(KEY);
});

test('a refused key is read again for the next search', async () => {
  start('tavily', { key: 'old' });
  answers = [{ status: 401 }];
  const { pod } = await claimed();
  await search(pod, 1);
  setKey(KEY);
  await search(pod, 2);
  expect(asked.map(({ key }) => key)).toEqual(['Bearer old', `Bearer ${KEY}`]);
});

test('a missing key says what to do', async () => {
  start('brave');
  world.api.vanish(Secrets, `${NAMESPACE}/models`);
  const { pod } = await claimed();
  expect((await search(pod)).result).toEqual({
    error: `web search is not set up: there is no key BRAVE_API_KEY of Secret models in namespace ${NAMESPACE}: create it`,
  });
  expect(asked).toEqual([]);
});

test('an engine that cannot be reached is an error', async () => {
  start('searxng');
  server.closeAllConnections();
  const { pod } = await claimed();
  await new Promise((resolve) => server.close(resolve));
  const answered = search(pod);
  for (let turn = 0; turn < 200; turn++) await world.clock.advance(turn < 100 ? 0 : 1000);
  expect((await answered).result).toEqual({
    error: 'SearXNG gave no answer: go on without, or try again later',
  });
});

test('the runner offers it to the model, which gets the hits', async () => {
  const pods = await PodWorld.start(temporary, { box: { webSearch: { engine: 'searxng', baseUrl: baseUrl() } } });
  ({ world, gateway } = pods);
  const run = await pods.run('helper-1', { message: '/tool web_search {"query":"mills","limit":1}' });
  expect(run.status?.phase).toBe('done');
  expect(await pods.calls('helper-1')).toEqual([{ tool: 'web_search', isError: false, result: FOUND }]);
  await pods.close();
});
