/** mcp-remote, the bridge of desktop programs that only start local servers; driven through it like Claude Desktop would. */
import { Client } from '@modelcontextprotocol/sdk/client/index.js';
import { StdioClientTransport } from '@modelcontextprotocol/sdk/client/stdio.js';
import { outcomeOf, testClient } from './support/client-contract.js';
import { WRONG_KEY, startLiveApi } from './support/live-api.js';
import type { LiveApi } from './support/live-api.js';
import { createHome, npmProgram, runProcess } from './support/run-process.js';

let api: LiveApi;
beforeAll(async () => {
  api = await startLiveApi();
});
afterAll(() => api.stop());

/** The key stands in a variable: a space in an argument breaks the settings of some programs. */
const HEADER = ['--header', 'Authorization:${AUTH}'];

const errors: unknown[] = [];

testClient(
  () => api,
  async ({ url, key }, calls) => {
    const home = await createHome();
    const [command, args] = npmProgram('mcp-remote', url, ...HEADER);
    const env = { PATH: process.env['PATH'] ?? '', ...home.env, AUTH: `Bearer ${key}` };
    const client = new Client({ name: 'test', version: '1' });
    // The client is no EventTarget: this property is its only way to report.
    Object.assign(client, { onerror: (error: unknown) => errors.push(error) });
    await client.connect(new StdioClientTransport({ command, args, env, stderr: 'ignore' }));
    const { tools } = await client.listTools();
    const outcomes = [];
    for (const call of calls) outcomes.push(outcomeOf(await client.callTool(call)));
    await client.close();
    await home.remove();
    return { tools: tools.map(({ name }) => name), outcomes };
  },
);

test('nothing was reported as an error', () => {
  expect(errors).toEqual([]);
});

test('with a wrong key it ends, because there is no sign-in to fall back to', async () => {
  const { code, stderr } = await runProcess(...npmProgram('mcp-remote', api.url, ...HEADER), {
    env: { AUTH: `Bearer ${WRONG_KEY}` },
  });
  expect(stderr).toContain('Dynamic Client Registration rejected (HTTP 404): {"error":"not found"}');
  expect(stderr).not.toContain(WRONG_KEY);
  expect(code).toBe(1);
});
