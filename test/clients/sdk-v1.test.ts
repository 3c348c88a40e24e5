/** The official TypeScript SDK, version 1. */
import { Client } from '@modelcontextprotocol/sdk/client/index.js';
import { StreamableHTTPClientTransport } from '@modelcontextprotocol/sdk/client/streamableHttp.js';
import { outcomeOf, testClient } from './support/client-contract.js';
import { WRONG_KEY, startLiveApi } from './support/live-api.js';
import type { LiveApi } from './support/live-api.js';
import { startLoopbackProxy } from './support/loopback-proxy.js';

let api: LiveApi;
beforeAll(async () => {
  api = await startLiveApi();
});
afterAll(() => api.stop());

function createTransport(url: string, key: string) {
  return new StreamableHTTPClientTransport(new URL(url), {
    requestInit: { headers: { authorization: `Bearer ${key}` } },
  });
}

const errors: unknown[] = [];
let requests: string[] = [];

testClient(
  () => api,
  async ({ url, key }, calls) => {
    const proxy = await startLoopbackProxy(url);
    requests = proxy.requests;
    const client = new Client({ name: 'test', version: '1' });
    // The client is no EventTarget: this property is its only way to report.
    Object.assign(client, { onerror: (error: unknown) => errors.push(error) });
    await client.connect(createTransport(proxy.url, key));
    const { tools } = await client.listTools();
    const outcomes = [];
    for (const call of calls) outcomes.push(outcomeOf(await client.callTool(call)));
    await client.ping();
    await client.close();
    proxy.close();
    return { tools: tools.map(({ name }) => name), outcomes };
  },
);

test('nothing was reported as an error, and the stream was tried once', () => {
  expect(errors).toEqual([]);
  expect(requests.filter((line) => line !== 'POST /api/mcp/account')).toEqual(['GET /api/mcp/account']);
});

test('a wrong key is shown with what to do', async () => {
  const client = new Client({ name: 'test', version: '1' });
  await expect(client.connect(createTransport(api.url, WRONG_KEY))).rejects.toMatchObject({
    code: 401,
    message: expect.stringContaining('Unauthorized: send the header "Authorization: Bearer <API_KEY>"'),
  });
});
