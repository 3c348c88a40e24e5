/** The official client against the real application on a loopback port: every tool once, without an error of the transport. */
import { createServer } from 'node:http';
import type { Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import { Client } from '@modelcontextprotocol/sdk/client/index.js';
import { StreamableHTTPClientTransport } from '@modelcontextprotocol/sdk/client/streamableHttp.js';
import { TOOLS } from '../../src/mcp/registry.js';
import { KEY, McpHarness } from '../builders/mcp-harness.js';

let server: Server;
afterEach(() => {
  server.closeAllConnections();
  server.close();
});

test('the SDK client lists and calls every tool; it tries one GET stream and takes the 405', async () => {
  const harness = new McpHarness();
  harness.controllerSays({ active: true });
  harness.seedTrigger('acme-box', 'greeter', 'hook');
  harness.seedConnectors();
  harness.seedTemplate('acme', 'writers');
  harness.seedSkill('acme-box', 'greeter', 'notes', { files: { 'a.txt': 'text' } });
  harness.seedSchedule('acme-box', 'greeter', 'daily');
  harness.seedRun('acme-box', 'greeter-1', { status: { phase: 'done' } });
  const methods: string[] = [];
  server = createServer((request, response) => {
    methods.push(request.method ?? '');
    harness.app(request, response);
  }).listen(0, '127.0.0.1');
  await new Promise((resolve) => server.once('listening', resolve));
  const { port } = server.address() as AddressInfo;
  const errors: Error[] = [];
  const transport = new StreamableHTTPClientTransport(new URL(`http://127.0.0.1:${port}/api/mcp/account`), {
    requestInit: { headers: { authorization: `Bearer ${KEY}` } },
  });
  const client = new Client({ name: 'test', version: '1' });
  // The client is no EventTarget: this property is its only way to report.
  Object.assign(client, { onerror: (error: Error) => errors.push(error) });
  await client.connect(transport);

  expect(client.getServerCapabilities()).toEqual({ tools: {} });
  const { tools } = await client.listTools();
  expect(tools.map(({ name }) => name)).toEqual(TOOLS.map(({ name }) => name));

  const agentId = 'acme-box.greeter';
  const templateId = 'acme.writers';
  const calls: [string, Record<string, unknown>][] = [
    ['list_spaces', {}],
    ['list_agents', {}],
    ['get_agent', { agentId }],
    ['create_agent', { name: 'new' }],
    ['send_message', { agentId, message: 'hi', waitSeconds: 0 }],
    ['list_runs', { agentId }],
    ['get_run', { agentId, runId: 'greeter-1' }],
    ['list_triggers', { agentId }],
    ['upsert_trigger', { agentId, name: 'fresh', body: 'go' }],
    ['test_trigger', { agentId, slug: 'hook' }],
    ['rotate_trigger_token', { agentId, slug: 'hook' }],
    ['cancel_run', { agentId, runId: 'greeter-1' }],
    ['list_sessions', { agentId }],
    ['get_session', { agentId, sessionId: 's-greeter-1' }],
    ['list_memories', { agentId }],
    ['list_skills', { agentId }],
    ['get_skill', { agentId, slug: 'notes' }],
    ['read_skill_file', { agentId, slug: 'notes', path: 'a.txt' }],
    ['upsert_skill', { agentId, name: 'fresh', description: 'For tests.', body: 'go' }],
    ['delete_skill', { agentId, slug: 'notes', confirm: true }],
    ['list_schedules', { agentId }],
    ['upsert_schedule', { agentId, name: 'fresh', body: 'go', cron: '0 9 * * *' }],
    ['run_schedule_now', { agentId, slug: 'daily' }],
    ['delete_schedule', { agentId, slug: 'daily', confirm: true }],
    ['search_connectors', {}],
    ['list_agent_connectors', { agentId }],
    ['attach_connector', { agentId, slug: 'github' }],
    ['detach_connector', { agentId, slug: 'github', confirm: true }],
    ['set_mcp_servers', { agentId, servers: [{ name: 'docs', url: 'https://mcp.example.com/mcp' }] }],
    ['list_models', {}],
    ['update_agent', { agentId, soul: 'You greet.' }],
    ['delete_trigger', { agentId, slug: 'hook', confirm: true }],
    ['list_templates', {}],
    ['get_template', { templateId }],
    ['create_template', { name: 'Team', agentIds: [agentId] }],
    ['update_template', { templateId, description: 'Better.' }],
    ['add_template_agent', { templateId, agentId }],
    ['update_template_agent', { templateId, templateAgentId: 'ta-1', soul: 'You write well.' }],
    ['validate_template', { templateId }],
    ['publish_template', { templateId }],
    ['install_template', { templateId }],
    ['unpublish_template', { templateId }],
    ['remove_template_agent', { templateId, templateAgentId: 'ta-1', confirm: true }],
    ['delete_template', { templateId, confirm: true }],
    ['delete_agent', { agentId, confirm: true }],
  ];
  expect(calls.map(([name]) => name).sort()).toEqual(TOOLS.map(({ name }) => name).sort());
  for (const [name, args] of calls) {
    const result = await client.callTool({ name, arguments: args });
    expect([name, result.isError ?? false]).toEqual([name, false]);
  }
  const failed = await client.callTool({ name: 'get_agent', arguments: {} });
  expect(failed.isError).toBe(true);

  await client.close();
  expect(errors).toEqual([]);
  expect(methods.filter((method) => method === 'GET')).toHaveLength(1);
});
