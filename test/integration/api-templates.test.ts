/** Connectors, updates and templates through the API process on a real API server, whose rules the in-memory one lacks. */
import { randomBytes } from 'node:crypto';
import { AgentTemplateParts } from '../../src/api/v1alpha1/agent-template.js';
import { startApiProcess } from '../builders/api-process.js';
import type { ApiProcess } from '../builders/api-process.js';
import { startApiServer } from '../builders/api-server.js';
import type { TestApiServer } from '../builders/api-server.js';

const AGENT = 'tpl.greeter';

let cluster: TestApiServer;
let process: ApiProcess;

const call = async (tool: string, args: object = {}) => (await process.call(tool, args)).payload;

beforeAll(async () => {
  cluster = await startApiServer({ own: true });
  await cluster.applyCrds();
  process = await startApiProcess(cluster, 'tpl');
});

afterAll(async () => {
  expect(await process.stop()).toBe(0);
  await cluster.stop();
});

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
});

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
});
