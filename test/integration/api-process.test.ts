/** The whole API process on a real API server: from the key to a stored run, and an orderly end. */
import { AgentRuns } from '../../src/api/v1alpha1/agent-run.js';
import { AgentTriggers } from '../../src/api/v1alpha1/agent-trigger.js';
import { startApiProcess } from '../builders/api-process.js';
import type { ApiProcess } from '../builders/api-process.js';
import { eventually, startApiServer } from '../builders/api-server.js';
import type { TestApiServer } from '../builders/api-server.js';

let cluster: TestApiServer;
let api: ApiProcess;

const call = async (tool: string, args: object) => (await api.call(tool, args)).payload;

beforeAll(async () => {
  cluster = await startApiServer({ own: true });
  await cluster.applyCrds();
  api = await startApiProcess(cluster, 'proc');
});

afterAll(async () => {
  await api.stop();
  await cluster.stop();
});

test('a trigger is made, fired by its URL and read back at once', async () => {
  const agentId = 'proc.greeter';
  const trigger = await call('upsert_trigger', { agentId, name: 'Hook', body: 'do it' });
  const path = new URL(trigger['url'] as string).pathname;
  const fired = await fetch(`${api.url}${path}`, { method: 'POST', body: '{"a":1}' });
  expect(fired.status).toBe(202);
  const { runId } = (await fired.json()) as { runId: string };
  const run = await cluster.api.get(AgentRuns, { namespace: 'bw-proc', name: runId });
  expect(run.spec).toMatchObject({ agent: 'greeter', trigger: { origin: 'trigger', name: 'hook' }, actor: 'trigger' });
  expect(await call('get_run', { agentId, runId })).toMatchObject({ status: 'running', trigger: 'trigger:hook' });

  const rotated = await call('rotate_trigger_token', { agentId, slug: 'hook' });
  expect(rotated).not.toHaveProperty('note');
  const stale = await fetch(`${api.url}${path}`, { method: 'POST' });
  expect(stale.status).toBe(404);
  const stored = await cluster.api.get(AgentTriggers, { namespace: 'bw-proc', name: 'greeter.hook' });
  expect(stored.spec.methods).toEqual(['POST']);
});

test('a waiting call is answered when the process is told to stop, and the process ends with 0', async () => {
  const waiting = call('send_message', { agentId: 'proc.greeter', message: 'hi', waitSeconds: 600 });
  const isStarted = async () => (await cluster.api.list(AgentRuns, { namespace: 'bw-proc' })).items.length === 2;
  await eventually(isStarted, 'the second run is not there');
  const exitCode = api.stop();
  expect(await waiting).toMatchObject({ status: 'running', note: expect.stringContaining('Still working') });
  expect(await exitCode).toBe(0);
});
