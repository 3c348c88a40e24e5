/** The whole API process on a real API server: from the key to a stored run, and an orderly end. */
import { createServer } from 'node:net';
import type { AddressInfo } from 'node:net';
import { hashOfApiKey } from '../../src/api/api-key-validity.js';
import { formatKeyring } from '../../src/api/keyring.js';
import { AgentRuns } from '../../src/api/v1alpha1/agent-run.js';
import { AgentTriggers } from '../../src/api/v1alpha1/agent-trigger.js';
import { AgentSpec, Agents } from '../../src/api/v1alpha1/agent.js';
import { APIKeySpec, APIKeys } from '../../src/api/v1alpha1/api-key.js';
import { BoxSpec, Boxes } from '../../src/api/v1alpha1/box.js';
import { WorkspaceSpec, Workspaces } from '../../src/api/v1alpha1/workspace.js';
import { Namespaces, Secrets } from '../../src/kube/core-types.js';
import { runApi } from '../../src/processes/api.js';
import { startApiServer } from '../builders/api-server.js';
import type { TestApiServer } from '../builders/api-server.js';

const KEY = `bw_${'p'.repeat(43)}`;
const GROUP = { apiVersion: 'boxwright.dev/v1alpha1' };

let cluster: TestApiServer;
let exitCode: Promise<number>;
let publicPort = 0;
let internalPort = 0;

async function freePort(): Promise<number> {
  const server = createServer().listen(0);
  await new Promise((resolve) => server.once('listening', resolve));
  const { port } = server.address() as AddressInfo;
  await new Promise((resolve) => server.close(resolve));
  return port;
}

async function until(condition: () => Promise<boolean>): Promise<void> {
  while (!(await condition())) await new Promise((resolve) => setTimeout(resolve, 50));
}

const ready = () =>
  fetch(`http://127.0.0.1:${internalPort}/readyz`).then(
    (response) => response.status === 200,
    () => false,
  );

async function seed(): Promise<void> {
  const { api } = cluster;
  await api.create(Workspaces, {
    ...GROUP,
    kind: 'Workspace',
    metadata: { name: 'proc' },
    spec: WorkspaceSpec.parse({}),
  });
  await api.create(Boxes, {
    ...GROUP,
    kind: 'Box',
    metadata: { name: 'proc' },
    spec: BoxSpec.parse({ workspace: 'proc' }),
  });
  for (const name of ['bw-ws-proc', 'bw-proc', 'proc-system']) {
    await api.create(Namespaces, { apiVersion: 'v1', kind: 'Namespace', metadata: { name } });
  }
  const key = await api.create(APIKeys, {
    ...GROUP,
    kind: 'APIKey',
    metadata: { namespace: 'bw-ws-proc', name: 'key' },
    spec: APIKeySpec.parse({}),
  });
  await api.replaceStatus(APIKeys, { ...key, status: { hash: hashOfApiKey(KEY), prefix: KEY.slice(0, 11) } });
  const metadata = { namespace: 'bw-proc', name: 'greeter' };
  const agent = await api.create(Agents, {
    ...GROUP,
    kind: 'Agent',
    metadata,
    spec: AgentSpec.parse({ name: 'Greeter' }),
  });
  await api.replaceStatus(Agents, { ...agent, status: { active: true } });
  const keys = formatKeyring({ current: 'k1', keys: new Map([['k1', Buffer.alloc(32, 5)]]) });
  await api.create(Secrets, {
    apiVersion: 'v1',
    kind: 'Secret',
    metadata: { namespace: 'proc-system', name: 'boxwright-keyring' },
    data: { 'keys.json': Buffer.from(keys).toString('base64') },
  });
}

async function call(name: string, args: object): Promise<Record<string, unknown>> {
  const response = await fetch(`http://127.0.0.1:${publicPort}/api/mcp/account`, {
    method: 'POST',
    headers: { authorization: `Bearer ${KEY}` },
    body: JSON.stringify({ jsonrpc: '2.0', id: 0, method: 'tools/call', params: { name, arguments: args } }),
  });
  const { result } = (await response.json()) as { result: { structuredContent: Record<string, unknown> } };
  return result.structuredContent;
}

beforeAll(async () => {
  cluster = await startApiServer({ own: true });
  await cluster.applyCrds();
  await seed();
  [publicPort, internalPort] = [await freePort(), await freePort()];
  exitCode = runApi({
    KUBECONFIG: cluster.kubeconfig,
    BOXWRIGHT_PUBLIC_URL: 'https://agents.example.com',
    BOXWRIGHT_RELEASE_NAMESPACE: 'proc-system',
    BOXWRIGHT_POD_UID: 'self',
    BOXWRIGHT_POD_NAME: 'self',
    BOXWRIGHT_LOG_LEVEL: 'error',
    BOXWRIGHT_API_PORT: String(publicPort),
    BOXWRIGHT_INTERNAL_PORT: String(internalPort),
  });
  await until(ready);
}, 300_000);

afterAll(async () => {
  process.emit('SIGTERM');
  await exitCode;
  await cluster.stop();
});

test('a trigger is made, fired by its URL and read back at once', async () => {
  const agentId = 'proc.greeter';
  const trigger = await call('upsert_trigger', { agentId, name: 'Hook', body: 'do it' });
  const path = new URL(trigger['url'] as string).pathname;
  const fired = await fetch(`http://127.0.0.1:${publicPort}${path}`, { method: 'POST', body: '{"a":1}' });
  expect(fired.status).toBe(202);
  const { runId } = (await fired.json()) as { runId: string };
  const run = await cluster.api.get(AgentRuns, { namespace: 'bw-proc', name: runId });
  expect(run.spec).toMatchObject({ agent: 'greeter', trigger: { origin: 'trigger', name: 'hook' }, actor: 'trigger' });
  expect(await call('get_run', { agentId, runId })).toMatchObject({ status: 'running', trigger: 'trigger:hook' });

  const rotated = await call('rotate_trigger_token', { agentId, slug: 'hook' });
  expect(rotated).not.toHaveProperty('note');
  const stale = await fetch(`http://127.0.0.1:${publicPort}${path}`, { method: 'POST' });
  expect(stale.status).toBe(404);
  const stored = await cluster.api.get(AgentTriggers, { namespace: 'bw-proc', name: 'greeter.hook' });
  expect(stored.spec.methods).toEqual(['POST']);
}, 60_000);

test('a waiting call is answered when the process is told to stop, and the process ends with 0', async () => {
  const waiting = call('send_message', { agentId: 'proc.greeter', message: 'hi', waitSeconds: 600 });
  await until(async () => (await cluster.api.list(AgentRuns, { namespace: 'bw-proc' })).items.length === 2);
  process.emit('SIGTERM');
  expect(await waiting).toMatchObject({ status: 'running', note: expect.stringContaining('Still working') });
  expect(await exitCode).toBe(0);
}, 60_000);
