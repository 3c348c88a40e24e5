/** Calls that wait for a run: no polling, heartbeats, clients that go away, SIGTERM (spec 4.2.7). */
import { createServer, request as httpRequest } from 'node:http';
import type { ClientRequest, Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import { AgentRuns } from '../../src/api/v1alpha1/agent-run.js';
import type { AgentRun } from '../../src/api/v1alpha1/agent-run.js';
import { KEY, McpHarness } from '../builders/mcp-harness.js';

const AGENT = 'acme-box.greeter';
let harness: McpHarness;
let server: Server;

beforeEach(async () => {
  harness = new McpHarness();
  server = createServer(harness.app).listen(0, '127.0.0.1');
  await new Promise((resolve) => server.once('listening', resolve));
});
afterEach(() => {
  server.closeAllConnections();
  server.close();
});

interface OpenCall {
  request: ClientRequest;
  /** What has arrived so far. */
  text(): string;
  status(): number | undefined;
  ended: Promise<string>;
}

function open(name: string, args: object): OpenCall {
  let text = '';
  let status: number | undefined;
  const { port } = server.address() as AddressInfo;
  const headers = { authorization: `Bearer ${KEY}`, 'content-type': 'application/json' };
  const request = httpRequest({ port, host: '127.0.0.1', path: '/api/mcp/account', method: 'POST', headers });
  const ended = new Promise<string>((resolve) => {
    request.on('response', (response) => {
      status = response.statusCode;
      response.on('data', (part: Buffer) => (text += part.toString()));
      response.on('end', () => resolve(text));
    });
    request.on('error', () => resolve(text));
  });
  request.end(JSON.stringify({ jsonrpc: '2.0', id: 0, method: 'tools/call', params: { name, arguments: args } }));
  return { request, text: () => text, status: () => status, ended };
}

/** Waits for something that the event loop brings about; the test's own time limit is the bound. */
async function until(condition: () => boolean): Promise<void> {
  while (!condition()) await new Promise((resolve) => setTimeout(resolve, 1));
}

function payloadOf(text: string): Record<string, unknown> {
  return (JSON.parse(text) as { result: { structuredContent: Record<string, unknown> } }).result.structuredContent;
}

function onlyRun(): AgentRun {
  const [run] = harness.api.all(AgentRuns);
  if (run === undefined) throw new Error('there is no run');
  return run;
}

function finish(run: AgentRun): void {
  harness.api.seed(AgentRuns, { ...run, status: { phase: 'done', reason: 'Completed', output: 'Hello!' } });
}

describe('send_message', () => {
  test('answers as soon as the run ends; waiting makes no request, the end one GET', async () => {
    const call = open('send_message', { agentId: AGENT, message: 'hi' });
    await until(() => harness.runWaiter.size === 1);
    await harness.clock.advance(14_000);
    expect(harness.requests()).toEqual(['create agentruns']);
    finish(onlyRun());
    const payload = payloadOf(await call.ended);
    expect(payload).toMatchObject({ status: 'done', output: 'Hello!' });
    expect(payload).not.toHaveProperty('note');
    expect(harness.requests()).toEqual(['get agentruns', 'create agentruns']);
    expect(harness.runWaiter.size).toBe(0);
  });

  test('sends headers and a space every 15 seconds, then the JSON', async () => {
    const call = open('send_message', { agentId: AGENT, message: 'hi', waitSeconds: 70 });
    await until(() => harness.runWaiter.size === 1);
    await harness.clock.advance(14_999);
    expect(call.status()).toBeUndefined();
    await harness.clock.advance(1);
    await until(() => call.text() === ' ');
    expect(call.status()).toBe(200);
    await harness.clock.advance(45_000);
    await until(() => call.text() === '    ');
    await harness.clock.advance(10_000);
    expect(payloadOf(await call.ended)).toMatchObject({
      status: 'running',
      note: expect.stringContaining('Still working'),
    });
    expect(harness.clock.pending).toBe(0);
  });

  test('waits 120 seconds unless told otherwise', async () => {
    const call = open('send_message', { agentId: AGENT, message: 'hi' });
    await until(() => harness.runWaiter.size === 1);
    await harness.clock.advance(119_999);
    expect(harness.runWaiter.size).toBe(1);
    await harness.clock.advance(1);
    expect(payloadOf(await call.ended)).toMatchObject({ status: 'running' });
  });

  test('a client that goes away ends the wait and leaves the run alone', async () => {
    const call = open('send_message', { agentId: AGENT, message: 'hi' });
    await until(() => harness.runWaiter.size === 1);
    call.request.destroy();
    await until(() => harness.runWaiter.size === 0);
    await until(() => harness.clock.pending === 0);
    expect(onlyRun().spec.cancelRequested).toBeUndefined();
    expect(harness.api.writes.map(({ verb }) => verb)).toEqual(['create']);
  });

  test('on SIGTERM every waiting call answers running', async () => {
    const calls = [1, 2, 3].map((n) => open('send_message', { agentId: AGENT, message: `hi ${n}` }));
    await until(() => harness.runWaiter.size === 3);
    harness.runWaiter.stop();
    for (const call of calls) expect(payloadOf(await call.ended)).toMatchObject({ status: 'running' });
  });
});

describe('get_run with waitSeconds', () => {
  test('waits for the end with one GET', async () => {
    const run = harness.seedRun('acme-box', 'greeter-1');
    harness.api.clearRecords();
    const call = open('get_run', { agentId: AGENT, runId: 'greeter-1', waitSeconds: 600 });
    await until(() => harness.runWaiter.size === 1);
    finish(run);
    expect(payloadOf(await call.ended)).toMatchObject({ status: 'done', output: 'Hello!' });
    expect(harness.requests()).toEqual(['get agentruns']);
  });
});

describe('cancel_run', () => {
  test('asks once and answers with the end of the run', async () => {
    const run = harness.seedRun('acme-box', 'greeter-1');
    harness.api.clearRecords();
    const call = open('cancel_run', { agentId: AGENT, runId: 'greeter-1' });
    await until(() => harness.runWaiter.size === 1);
    harness.api.seed(AgentRuns, { ...run, status: { phase: 'cancelled', reason: 'Cancelled' } });
    expect(payloadOf(await call.ended)).toEqual({ runId: 'greeter-1', status: 'cancelled', note: null });
    expect(harness.api.writes.map(({ verb, body }) => [verb, body])).toEqual([
      [
        'patch',
        {
          metadata: { uid: run.metadata.uid, annotations: { 'boxwright.dev/requested-by': KEY.slice(0, 11) } },
          spec: { cancelRequested: true },
        },
      ],
    ]);
  });

  test('answers after 10 seconds that it goes on in the background', async () => {
    harness.seedRun('acme-box', 'greeter-1');
    const call = open('cancel_run', { agentId: AGENT, runId: 'greeter-1' });
    await until(() => harness.runWaiter.size === 1);
    await harness.clock.advance(10_000);
    expect(payloadOf(await call.ended)).toEqual({
      runId: 'greeter-1',
      status: 'running',
      note: 'Cancellation is requested and happens in the background; read the run with get_run.',
    });
  });
});
