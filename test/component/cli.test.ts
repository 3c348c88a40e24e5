/** The command line against the real application on a loopback port: the example of each help, exit codes, what is printed. */
import { createServer } from 'node:http';
import type { Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import { createToolClient } from '../../src/cli/mcp-client.js';
import { EXAMPLES, runCli } from '../../src/cli/program.js';
import { AgentRuns } from '../../src/api/v1alpha1/agent-run.js';
import { KEY, McpHarness } from '../builders/mcp-harness.js';

let server: Server;
let harness: McpHarness;
let url: string;
beforeEach(async () => {
  harness = new McpHarness();
  server = createServer(harness.app).listen(0, '127.0.0.1');
  await new Promise((resolve) => server.once('listening', resolve));
  url = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
});
afterEach(() => {
  server.closeAllConnections();
  server.close();
});

async function cli(args: string[], env: NodeJS.ProcessEnv = { BOXWRIGHT_URL: url, BOXWRIGHT_API_KEY: KEY }) {
  let out = '';
  let err = '';
  const code = await runCli(args, {
    env,
    version: '1.2.3',
    out: (text) => (out += text),
    err: (text) => (err += text),
    connect: createToolClient,
  });
  return { code, out, err };
}

/** The words of an example, on the agent of the harness. */
function words(example: string): string[] {
  const parts = example.replace('quickstart.', 'acme-box.').match(/"[^"]*"|\S+/g) ?? [];
  return parts.map((part) => part.replaceAll('"', ''));
}

const DONE = { phase: 'done', reason: 'Completed', output: 'Hello \u001b[31mthere' } as const;
const QUESTION = { kind: 'question', callId: 'c1', text: 'Which one?' } as const;
const APPROVAL = { kind: 'approval', callId: 'c1', text: 'May I?', tool: 'shell', input: '{}' } as const;

test('the help of each command has its example', async () => {
  for (const [name, example] of Object.entries(EXAMPLES)) {
    const { code, out } = await cli([name, '--help']);
    expect({ code, shown: out.includes(`kubectl boxwright ${example}`) }).toEqual({ code: 0, shown: true });
  }
});

test('run creates the run, and prints its id or the whole answer as JSON', async () => {
  const { code, out } = await cli(words(EXAMPLES.run).filter((word) => word !== '-f'));
  expect(code).toBe(0);
  const run = await harness.api.get(AgentRuns, { namespace: 'bw-acme-box', name: out.trim() });
  expect(run.spec.message).toBe('Hello');
  for (const args of [
    ['-o', 'json', 'run', 'acme-box.greeter', 'Again'],
    ['run', 'acme-box.greeter', 'Again', '-o', 'json'],
  ]) {
    expect(JSON.parse((await cli(args)).out)).toMatchObject({ status: 'running' });
  }
});

test('logs -f shows the end of a run without what would steer a terminal, and fails with its run', async () => {
  harness.seedRun('acme-box', 'greeter-1', { status: DONE });
  const good = await cli(words(EXAMPLES.logs));
  expect(good).toMatchObject({ code: 0, err: '' });
  expect(good.out).toContain('Hello [31mthere\ngreeter-1: done, Completed');
  harness.seedRun('acme-box', 'greeter-2', { status: { phase: 'error', reason: 'ModelError', message: 'no model' } });
  const bad = await cli(['logs', 'acme-box.greeter', 'greeter-2', '-f']);
  expect(bad.code).toBe(1);
  expect(bad.out).toContain('greeter-2: error, ModelError');
});

test('why gives cause and next step of the reason', async () => {
  harness.seedRun('acme-box', 'greeter-1', { status: { phase: 'error', reason: 'AgentNotFound', message: 'gone' } });
  const { code, out } = await cli(words(EXAMPLES.why));
  expect(code).toBe(0);
  expect(out).toContain('AgentNotFound: No Agent of that name is in the namespace.\nNext step: Check spec.agent');
});

test('cancel of a run that has ended says how it ended', async () => {
  harness.seedRun('acme-box', 'greeter-1', { status: DONE });
  expect(await cli(words(EXAMPLES.cancel))).toEqual({ code: 0, out: 'greeter-1: done\n', err: '' });
});

test.each([
  ['answer', QUESTION, 'The blue one'],
  ['approve', APPROVAL, 'deny: not today'],
] as const)('%s goes on with the session that waits', async (name, pending, message) => {
  harness.seedRun('acme-box', 'greeter-1', { status: { ...DONE, claim: { pod: 'p' }, pending } as never });
  const { code, out, err } = await cli(words(EXAMPLES[name]));
  expect({ code, err }).toEqual({ code: 0, err: '' });
  const run = await harness.api.get(AgentRuns, { namespace: 'bw-acme-box', name: out.trim() });
  expect(run.spec).toMatchObject({ message, sessionId: 's-greeter-1' });
});

test('an answer to a run that waits for nothing starts nothing', async () => {
  harness.seedRun('acme-box', 'greeter-1', { status: DONE });
  const { code, err } = await cli(words(EXAMPLES.answer));
  expect({ code, err }).toEqual({ code: 1, err: 'error: greeter-1 waits for nothing, or was answered already\n' });
});

test('wrong use exits with 2, a refused key or tool with 1, and no message has the key', async () => {
  expect((await cli(['nothing'])).code).toBe(2);
  expect((await cli(['run'])).code).toBe(2);
  expect((await cli(words(EXAMPLES.why), {})).code).toBe(2);
  expect((await cli(['approve', 'acme-box.greeter', 'greeter-1', '--reason', 'x'])).code).toBe(2);
  const wrong = await cli(words(EXAMPLES.why), { BOXWRIGHT_URL: url, BOXWRIGHT_API_KEY: 'bw_wrong' });
  expect(wrong.code).toBe(1);
  expect(wrong.err).not.toContain('bw_wrong');
  expect((await cli(['why', 'acme-box.greeter', 'greeter-9'])).code).toBe(1);
});
