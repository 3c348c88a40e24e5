/** The command line of the MCP Inspector: one process a call, and its linter of tool schemas. */
import { outcomeOf, testClient } from './support/client-contract.js';
import type { CallOutcome } from './support/client-contract.js';
import { WRONG_KEY, startLiveApi } from './support/live-api.js';
import type { LiveApi } from './support/live-api.js';
import { npmProgram, runProcess } from './support/run-process.js';

/** Exit codes of the Inspector. */
const AUTH_REQUIRED = 3;
const TOOL_IS_ERROR = 5;

let api: LiveApi;
beforeAll(async () => {
  api = await startLiveApi();
});
afterAll(() => api.stop());

/** `--stored-auth-only`: never starts a sign-in in a browser. */
function inspect(key: string, ...args: string[]) {
  const fixed = ['--cli', api.url, '--transport', 'http', '--stored-auth-only', '--format', 'json'];
  return runProcess(...npmProgram('mcp-inspector', ...fixed, '--header', `Authorization: Bearer ${key}`, ...args));
}

async function listTools(...args: string[]): Promise<{ names: string[]; stderr: string }> {
  const { code, stdout, stderr } = await inspect(api.key, '--method', 'tools/list', ...args);
  if (code !== 0) throw new Error(`tools/list ended with ${code}: ${stderr}`);
  const { result } = JSON.parse(stdout) as { result: { tools: { name: string }[] } };
  return { names: result.tools.map(({ name }) => name), stderr };
}

async function call(name: string, args: object): Promise<CallOutcome> {
  const chosen = ['--method', 'tools/call', '--tool-name', name, '--tool-args-json', JSON.stringify(args)];
  const { code, stdout, stderr } = await inspect(api.key, ...chosen);
  // It ends with the same code when it does not find the tool, but then without a result.
  if (stdout === '') throw new Error(`${name} ended with ${code}: ${stderr}`);
  const { result } = JSON.parse(stdout) as { result: { isError?: boolean } };
  const outcome = outcomeOf(result);
  if (outcome.isError !== (code === TOOL_IS_ERROR)) throw new Error(`${name} ended with ${code}: ${stdout}`);
  return outcome;
}

testClient(
  () => api,
  async (_api, calls) => {
    const { names } = await listTools();
    const outcomes = [];
    for (const { name, arguments: args } of calls) outcomes.push(await call(name, args));
    return { tools: names, outcomes };
  },
  1_200_000,
);

test('its linter finds nothing in the schemas of the tools', async () => {
  expect((await listTools('--strict')).stderr).toBe('');
});

test('its probe for a newer revision falls back', async () => {
  expect((await listTools('--protocol-era', 'auto')).names).toContain('list_agents');
});

test('a wrong key is shown with what to do', async () => {
  const { code, stderr } = await inspect(WRONG_KEY, '--method', 'tools/list');
  expect(JSON.parse(stderr)).toEqual({
    error: {
      code: 'auth_required',
      message: expect.stringContaining('Unauthorized: send the header "Authorization: Bearer <API_KEY>"'),
    },
  });
  expect(code).toBe(AUTH_REQUIRED);
});
