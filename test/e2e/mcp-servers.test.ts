/** MCP servers of agents, in real pods: the account endpoint itself, a program beside the tools, and addresses that are refused. */
import { jest } from '@jest/globals';
import { apply, getObject, RELEASE_NAMESPACE } from './support/install.js';
import { finishedRun, toolOk } from './support/mcp.js';
import type { RunRecord } from './support/mcp.js';
import { createTenant } from './support/tenant.js';
import type { Tenant } from './support/tenant.js';
import { startProviderPod } from './support/vendor.js';
import type { ProviderPod } from './support/vendor.js';

jest.setTimeout(900_000);

/** An MCP server of transport stdio in one line of Node: its tool says what is in its environment. */
const PROGRAM = `
const answer = (id, result) => console.log(JSON.stringify({ jsonrpc: '2.0', id, result }));
require('node:readline').createInterface({ input: process.stdin }).on('line', (line) => {
  const { id, method } = JSON.parse(line);
  if (method === 'initialize') answer(id, { protocolVersion: '2025-06-18', capabilities: { tools: {} }, serverInfo: { name: 'p', version: '1' } });
  if (method === 'tools/list') answer(id, { tools: [{ name: 'tell', inputSchema: { type: 'object' } }] });
  if (method === 'tools/call') answer(id, { content: [{ type: 'text', text: 'word: ' + process.env.WORD }] });
});`;

describe('MCP servers in runs', () => {
  let tenant: Tenant;
  /** Of the API inside the cluster: names need a DNS that a test cluster may not have. */
  let api: string;
  let vendors: ProviderPod;

  beforeAll(async () => {
    vendors = await startProviderPod('e2e-mcp');
    const service = await getObject<{ spec: { clusterIP: string } }>('service', 'boxwright-api', RELEASE_NAMESPACE);
    api = service?.spec.clusterIP ?? '';
    const trustedHosts = [api, vendors.redirecting.host].map((host) => ({ host, http: true }));
    tenant = await createTenant('e2e-mcp', {
      box: { egress: { requireEnforcement: false, trustedHosts } },
    });
  });

  afterAll(async () => {
    await tenant.remove();
    await vendors.remove();
  });

  function secret(
    agent: string,
    data: Record<string, string>,
    annotations: Record<string, string>,
    labels: Record<string, string> = { 'boxwright.dev/credential': 'true' },
  ): Promise<void> {
    return apply({
      apiVersion: 'v1',
      kind: 'Secret',
      metadata: {
        name: `${agent}-secrets`,
        namespace: tenant.namespace,
        labels,
        annotations,
      },
      stringData: data,
    });
  }

  async function send(agent: string, message: string, sessionId?: string): Promise<RunRecord> {
    const agentId = tenant.agentId(agent);
    const session = sessionId === undefined ? {} : { sessionId };
    const input = { agentId, message, waitSeconds: 120, ...session };
    const { runId } = await toolOk<RunRecord>(tenant.apiKey, 'send_message', input);
    return finishedRun(tenant.apiKey, agentId, runId);
  }

  const account = () => ({
    name: 'account',
    transport: 'http',
    url: `http://${api}/api/mcp/account`,
    headers: [{ name: 'Authorization', value: 'Bearer ${BOXWRIGHT_KEY}' }],
  });

  test('an agent that is given the account endpoint finds its tools by a search, and works with them', async () => {
    await secret('manager', { BOXWRIGHT_KEY: tenant.apiKey }, { 'boxwright.dev/hosts': api });
    await tenant.agent('manager', { mcpServers: [account()] });

    const run = await send(
      'manager',
      '/tool search_tools {"query":"list agents"}\n/tool account__list_agents {}\n/say Done.',
    );

    expect(run).toMatchObject({ status: 'done', output: 'Done.' });
    expect(run.toolCalls?.map(({ tool, isError }) => [tool, isError])).toEqual([
      ['search_tools', false],
      ['account__list_agents', false],
    ]);
    expect(run.toolCalls?.[1]?.result).toContain(`"id":"${tenant.agentId('manager')}"`);
    expect(JSON.stringify(run)).not.toContain(tenant.apiKey);
  });

  test('a call that needs an approval is made after it, in the next run', async () => {
    await secret('careful', { BOXWRIGHT_KEY: tenant.apiKey }, { 'boxwright.dev/hosts': api });
    await tenant.agent('careful', { mcpServers: [account()], approvals: ['account'] });

    const asked = await send(
      'careful',
      '/tool search_tools {"query":"account__list_spaces"}\n/tool account__list_spaces {}\n/say Done.',
    );
    expect(asked).toMatchObject({
      output: expect.stringContaining('May I use account__list_spaces?'),
      toolCalls: [{ tool: 'search_tools', isError: false }],
    });
    const approved = await send('careful', 'approve', asked.sessionId);

    expect(approved).toMatchObject({ status: 'done', output: 'Done.' });
    expect(approved.toolCalls?.[0]?.result).toContain('"name":"e2e-mcp"');
  });

  test('a program beside the tools gets a value only from a Secret that may be exposed', async () => {
    const program = { name: 'program', transport: 'stdio', command: 'node', args: ['-e', PROGRAM] };
    const env = [{ name: 'WORD', value: '${WORD}' }];
    await secret('local', { WORD: 'pineapple' }, { 'boxwright.dev/hosts': 'mcp.example.com' });
    await tenant.agent('local', { mcpServers: [{ ...program, env }] });
    const without = await send('local', '/tool program__tell {}');
    expect(without.output).toContain('the tool program__tell is not there');

    await secret('local', { WORD: 'pineapple' }, { 'boxwright.dev/expose-to-tools': 'true' });
    const run = await send('local', '/tool program__tell {}\n/say Done.');
    expect(run.toolCalls?.map(({ result }) => result)).toEqual(['{"text":"word: pineapple"}']);
  });

  test.each([
    ['unlabelled', 'without our label', (host: string) => ({ host, labels: {} })],
    ['elsewhere', 'for another host', () => ({ host: 'mcp.example.com', labels: undefined })],
  ])('agent %s with a Secret %s: its server is left out, and the run goes on', async (agent, _what, made) => {
    const { host, labels } = made(api);
    await secret(agent, { BOXWRIGHT_KEY: tenant.apiKey }, { 'boxwright.dev/hosts': host }, labels);
    await tenant.agent(agent, { mcpServers: [account()] });
    const run = await send(agent, '/shell echo on\n/tool account__list_agents {}');
    expect(run.status).toBe('done');
    expect(run.output).toContain('the tool account__list_agents is not there');
    expect(JSON.stringify(run)).not.toContain(tenant.apiKey);
  });

  test('a redirect is not followed, and the run goes on', async () => {
    const { redirecting } = vendors;
    const moved = { name: 'moved', transport: 'http', url: `http://${redirecting.host}/redirect` };
    await tenant.agent('led-on', { mcpServers: [moved] });
    const run = await send('led-on', '/shell echo on\n/tool moved__any {}');
    expect(run.status).toBe('done');
    expect(run.output).toContain('the tool moved__any is not there');
    expect(new Set(await redirecting.paths())).toEqual(new Set(['/redirect']));
  });

  test.each([
    ['the API server', 'https://10.96.0.1/'],
    ['the metadata service', 'https://169.254.169.254/'],
    ['the gateway itself', 'https://127.0.0.1:8443/'],
    ['a name that leads to it', 'https://localhost:8443/'],
  ])('%s is not connected to, and the run goes on', async (_name, url) => {
    await tenant.agent('nosy', { mcpServers: [{ name: 'inside', transport: 'http', url }] });
    const run = await send('nosy', '/shell echo on\n/tool inside__any {}');
    expect(run.status).toBe('done');
    expect(run.output).toContain('the tool inside__any is not there');
  });
});
