/** Connectors, updates and templates through the API process on a real API server, whose rules the in-memory one lacks. */
import { createServer } from 'node:net';
import type { AddressInfo } from 'node:net';
import { randomBytes } from 'node:crypto';
import { hashOfApiKey } from '../../src/api/api-key-validity.js';
import { formatKeyring } from '../../src/api/keyring.js';
import { AgentTemplateParts } from '../../src/api/v1alpha1/agent-template.js';
import { AgentSpec, Agents } from '../../src/api/v1alpha1/agent.js';
import { APIKeySpec, APIKeys } from '../../src/api/v1alpha1/api-key.js';
import { BoxSpec, Boxes } from '../../src/api/v1alpha1/box.js';
import { Connectors } from '../../src/api/v1alpha1/connector.js';
import { WorkspaceSpec, Workspaces } from '../../src/api/v1alpha1/workspace.js';
import { SHIPPED_CONNECTORS } from '../../src/connectors/catalog.js';
import { desiredConnector } from '../../src/controllers/connector-catalog/controller.js';
import { Namespaces, Secrets } from '../../src/kube/core-types.js';
import { runApi } from '../../src/processes/api.js';
import { eventually, startApiServer } from '../builders/api-server.js';
import type { TestApiServer } from '../builders/api-server.js';

const KEY = `bw_${'t'.repeat(43)}`;
const GROUP = { apiVersion: 'boxwright.dev/v1alpha1' };
const AGENT = 'tpl.greeter';

let cluster: TestApiServer;
let exitCode: Promise<number>;
let port = 0;

async function freePort(): Promise<number> {
  const server = createServer().listen(0);
  await new Promise((resolve) => server.once('listening', resolve));
  const { port: free } = server.address() as AddressInfo;
  await new Promise((resolve) => server.close(resolve));
  return free;
}

async function seed(): Promise<void> {
  const { api } = cluster;
  const workspace = WorkspaceSpec.parse({ expertSandbox: true });
  await api.create(Workspaces, { ...GROUP, kind: 'Workspace', metadata: { name: 'tpl' }, spec: workspace });
  const box = BoxSpec.parse({ workspace: 'tpl', engine: 'scripted' });
  await api.create(Boxes, { ...GROUP, kind: 'Box', metadata: { name: 'tpl' }, spec: box });
  for (const name of ['bw-ws-tpl', 'bw-tpl', 'tpl-system']) {
    await api.create(Namespaces, { apiVersion: 'v1', kind: 'Namespace', metadata: { name } });
  }
  const metadata = { namespace: 'bw-ws-tpl', name: 'key' };
  const key = await api.create(APIKeys, { ...GROUP, kind: 'APIKey', metadata, spec: APIKeySpec.parse({}) });
  await api.replaceStatus(APIKeys, { ...key, status: { hash: hashOfApiKey(KEY), prefix: KEY.slice(0, 11) } });
  await api.create(Agents, {
    ...GROUP,
    kind: 'Agent',
    metadata: { namespace: 'bw-tpl', name: 'greeter' },
    spec: AgentSpec.parse({ name: 'Greeter', soul: 'I am @greeter.' }),
  });
  // The API server takes every shipped connector as it is.
  for (const shipped of SHIPPED_CONNECTORS) await api.create(Connectors, desiredConnector(shipped));
  const keys = formatKeyring({ current: 'k1', keys: new Map([['k1', Buffer.alloc(32, 5)]]) });
  await api.create(Secrets, {
    apiVersion: 'v1',
    kind: 'Secret',
    metadata: { namespace: 'tpl-system', name: 'boxwright-keyring' },
    data: { 'keys.json': Buffer.from(keys).toString('base64') },
  });
}

async function call(name: string, args: object = {}): Promise<Record<string, unknown>> {
  const response = await fetch(`http://127.0.0.1:${port}/api/mcp/account`, {
    method: 'POST',
    headers: { authorization: `Bearer ${KEY}`, 'content-type': 'application/json' },
    body: JSON.stringify({ jsonrpc: '2.0', id: 0, method: 'tools/call', params: { name, arguments: args } }),
  });
  const { result } = (await response.json()) as { result: { content: { text: string }[] } };
  return JSON.parse(result.content[0]?.text ?? '') as Record<string, unknown>;
}

beforeAll(async () => {
  cluster = await startApiServer({ own: true });
  await cluster.applyCrds();
  await seed();
  port = await freePort();
  const internalPort = await freePort();
  exitCode = runApi({
    KUBECONFIG: cluster.kubeconfig,
    BOXWRIGHT_PUBLIC_URL: 'https://agents.example.com',
    BOXWRIGHT_RELEASE_NAMESPACE: 'tpl-system',
    BOXWRIGHT_POD_UID: 'uid-of-this-pod',
    BOXWRIGHT_POD_NAME: 'api-0',
    BOXWRIGHT_API_PORT: String(port),
    BOXWRIGHT_INTERNAL_PORT: String(internalPort),
    BOXWRIGHT_LOG_LEVEL: 'error',
  });
  const ready = () =>
    fetch(`http://127.0.0.1:${internalPort}/readyz`).then(
      ({ status }) => status === 200,
      () => false,
    );
  await eventually(ready, 'the API process is not ready', 30_000);
}, 60_000);

afterAll(async () => {
  process.emit('SIGTERM');
  expect(await exitCode).toBe(0);
  await cluster.stop();
}, 60_000);

test('an agent gets connectors and servers, and fields go back to their defaults', async () => {
  expect(await call('attach_connector', { agentId: AGENT, slug: 'github' })).toMatchObject({ status: 'needs_auth' });
  const server = { name: 'docs', url: 'https://mcp.example.com', headers: { Authorization: 'Bearer ${DOCS}' } };
  expect(await call('set_mcp_servers', { agentId: AGENT, servers: [server] })).toMatchObject({ added: ['docs'] });
  const set = { agentId: AGENT, model: 'm', temperature: 0.5, setup: { required: true, prompt: 'p' } };
  expect(await call('update_agent', set)).toMatchObject({ updated: ['model', 'temperature', 'setup'] });
  const back = { agentId: AGENT, model: null, temperature: null, setup: { required: false }, tools: { shell: false } };
  expect(await call('update_agent', back)).toMatchObject({ updated: ['model', 'temperature', 'tools', 'setup'] });
  expect(await call('get_agent', { agentId: AGENT })).toMatchObject({
    model: null,
    temperature: null,
    setup: { required: false, prompt: null },
    tools: { shell: false, web: true },
    connectors: [{ slug: 'github', status: 'needs_auth' }],
    mcpServers: [{ name: 'docs', missingSecrets: ['DOCS'] }],
  });
  const updates = ['a', 'b', 'c', 'd'].map((soul) =>
    call('update_agent', { agentId: AGENT, soul: `I am @greeter ${soul}.` }),
  );
  for (const answer of await Promise.all(updates)) expect(answer).not.toHaveProperty('error');
}, 60_000);

test('a template of several parts is captured, published, installed and deleted', async () => {
  const files = [1, 2, 3, 4].map((number) => ({
    path: `data-${number}.bin`,
    content: randomBytes(190_000).toString('base64'),
    encoding: 'base64',
  }));
  await call('upsert_skill', { agentId: AGENT, name: 'Data', description: 'Data.', body: 'Read it.', files });
  await call('upsert_schedule', { agentId: AGENT, name: 'Daily', body: 'Report.', cron: '0 9 * * *' });
  await call('upsert_trigger', { agentId: AGENT, name: 'Hook', body: 'Ask @greeter.' });
  const template = await call('create_template', { name: 'Team', description: 'One agent.', agentIds: [AGENT] });
  expect(template).toMatchObject({ templateId: 'tpl.team', agentCount: 1 });
  const { items } = await cluster.api.list(AgentTemplateParts, { namespace: 'bw-ws-tpl' });
  expect(items.length).toBeGreaterThan(1);

  const templateId = 'tpl.team';
  expect(await call('validate_template', { templateId })).toMatchObject({ valid: true });
  expect(await call('publish_template', { templateId })).toMatchObject({ version: 1 });
  const installed = await call('install_template', { templateId });
  expect(installed).toMatchObject({
    version: 1,
    agents: [{ agentId: 'tpl.greeter-2', handle: 'greeter-2', connectors: [{ slug: 'github' }] }],
  });
  const copy = 'tpl.greeter-2';
  expect(await call('list_triggers', { agentId: copy })).toMatchObject({ triggers: [{ body: 'Ask @greeter-2.' }] });
  expect(await call('list_schedules', { agentId: copy })).toMatchObject({ schedules: [{ enabled: false }] });
  expect(await call('list_skills', { agentId: copy })).toMatchObject({ skills: [{ slug: 'data' }] });
  expect(await call('list_templates')).toMatchObject({ templates: [{ templateId, installCount: 1 }] });

  expect(await call('delete_agent', { agentId: copy, confirm: true })).toEqual({ deleted: copy });
  expect(await call('get_agent', { agentId: copy })).toHaveProperty('error');
  expect(await call('delete_template', { templateId, confirm: true })).toEqual({ deleted: templateId });
  expect((await cluster.api.list(AgentTemplateParts, { namespace: 'bw-ws-tpl' })).items).toEqual([]);
}, 60_000);
