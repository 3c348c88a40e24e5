/** The MCP client of the AI SDK, as applications use it: tools made from the server's list. */
import { createMCPClient } from '@ai-sdk/mcp';
import type { MCPClient } from '@ai-sdk/mcp';
import { TOOLS } from '../../src/mcp/registry.js';
import { outcomeOf, testClient } from './support/client-contract.js';
import { WRONG_KEY, startLiveApi } from './support/live-api.js';
import type { LiveApi } from './support/live-api.js';

let api: LiveApi;
beforeAll(async () => {
  api = await startLiveApi();
});
afterAll(() => api.stop());

const errors: unknown[] = [];

function connect(url: string, key: string): Promise<MCPClient> {
  return createMCPClient({
    transport: { type: 'http', url, headers: { authorization: `Bearer ${key}` } },
    onUncaughtError: (error) => errors.push(error),
  });
}

testClient(
  () => api,
  async ({ url, key }, calls) => {
    const client = await connect(url, key);
    const { tools } = await client.listTools();
    const outcomes = [];
    for (const call of calls) outcomes.push(outcomeOf(await client.callTool(call)));
    await client.close();
    return { tools: tools.map(({ name }) => name), outcomes };
  },
);

test('an agent gets all tools and can execute one', async () => {
  const client = await connect(api.url, api.key);
  const tools = await client.tools();
  const result = await tools['list_spaces']?.execute?.({}, { toolCallId: '1', messages: [], context: {} });
  await client.close();
  expect(Object.keys(tools)).toEqual(TOOLS.map(({ name }) => name));
  expect(result).toMatchObject({ structuredContent: { spaces: [{ id: api.spaceId }] } });
});

test('nothing was reported as an error', () => {
  expect(errors).toEqual([]);
});

test('a wrong key is shown with what to do', async () => {
  await expect(connect(api.url, WRONG_KEY)).rejects.toThrow(
    'Unauthorized: send the header "Authorization: Bearer <API_KEY>"',
  );
});
