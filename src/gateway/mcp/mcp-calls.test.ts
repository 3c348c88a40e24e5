/** Who may ask which server; what is asked and answered stands in test/component/run-mcp-servers.test.ts. */
import { Agents } from '../../api/v1alpha1/agent.js';
import { Secrets } from '../../kube/core-types.js';
import { mcpPath } from '../../protocol/mcp.js';
import { GatewayWorld, NAMESPACE } from '../../../test/builders/gateway-world.js';

const LIST = { jsonrpc: '2.0', id: 1, method: 'tools/list' };
const STDIO = {
  name: 'local',
  transport: 'stdio',
  command: 'node',
  args: ['server.js', '--key=${KEY}'],
  env: [
    { name: 'PLAIN', value: 'x' },
    { name: 'WORD', value: 'a ${WORD}' },
  ],
};

async function setUp(agent: object = {}) {
  let asked = 0;
  const world = new GatewayWorld({
    web: {
      request: () => {
        asked += 1;
        return Promise.reject(Object.assign(new Error('no'), { code: 'ECONNREFUSED' }));
      },
    },
    agent: { mcpServers: [{ name: 'fake', transport: 'http', url: 'https://mcp.example.com/' }], ...agent },
  });
  const gateway = world.startGateway();
  const pod = world.addRun('helper-1');
  return { world, gateway, pod, asked: () => asked };
}

test('only with the token of the pod that holds a live run', async () => {
  const { world, gateway, pod, asked } = await setUp();
  const path = mcpPath('fake');
  const ask = async (token?: string) => (await world.post(gateway, path, LIST, token)).status;
  expect(await ask()).toBe(401);
  expect(await ask(world.token(pod, { genuine: false }))).toBe(401);
  expect(await ask(world.token(pod, { audience: 'kubernetes' }))).toBe(401);
  // Not claimed yet.
  expect(await ask(pod.token)).toBe(409);
  await world.claim(gateway, pod);
  expect(await ask(world.addPod('helper-1', 'b').token)).toBe(409);
  expect(asked()).toBe(0);
  expect(await ask(pod.token)).toBe(502);
  expect(asked()).toBe(1);
  world.changeRun('helper-1', { status: { phase: 'done' } });
  expect(await ask(pod.token)).toBe(410);
  expect(asked()).toBe(1);
});

test('only servers that the agent has now', async () => {
  const { world, gateway, pod, asked } = await setUp();
  await world.claim(gateway, pod);
  const ask = (server: string) => world.post(gateway, mcpPath(server), LIST, pod.token);
  expect(await ask('other')).toMatchObject({
    status: 404,
    json: {
      error: { type: 'McpNotFound', message: 'the agent of this run has no MCP server other, or it is switched off' },
    },
  });
  const agent = world.api.peek(Agents, `${NAMESPACE}/helper`);
  if (agent === undefined) throw new Error('no agent');
  world.api.seed(Agents, { ...agent, spec: { ...agent.spec, mcpServers: [] } });
  expect((await ask('fake')).status).toBe(404);
  expect(asked()).toBe(0);
});

test.each([
  ['GET', 405, 'use POST or DELETE'],
  ['PUT', 405, 'use POST or DELETE'],
])('%s is not taken', async (method, status, message) => {
  const { world, gateway, pod } = await setUp();
  const reply = await world.send(gateway, { method, url: mcpPath('fake'), token: pod.token });
  expect(reply).toMatchObject({ status, headers: { allow: 'POST, DELETE' }, json: { error: { message } } });
});

test('messages are bounded in size and depth', async () => {
  const { world, gateway, pod, asked } = await setUp();
  await world.claim(gateway, pod);
  const ask = (params: unknown) => world.post(gateway, mcpPath('fake'), { ...LIST, params }, pod.token);
  let deep: object = {};
  for (let level = 0; level < 63; level++) deep = { deep };
  expect((await ask(deep)).status).toBe(400);
  expect((await ask({ text: 'x'.repeat(1024 * 1024) })).status).toBe(413);
  expect(asked()).toBe(0);
});

describe('a stdio server in a claim', () => {
  const claimWith = async (annotations: Record<string, string> | undefined) => {
    const { world, gateway, pod } = await setUp({ mcpServers: [STDIO] });
    if (annotations !== undefined) {
      world.api.seed(Secrets, {
        apiVersion: 'v1',
        kind: 'Secret',
        metadata: {
          namespace: NAMESPACE,
          name: 'helper-secrets',
          labels: { 'boxwright.dev/credential': 'true' },
          annotations,
        },
        data: { KEY: 'azE=', WORD: 'dzE=' },
      });
    }
    const { json } = await world.claim(gateway, pod);
    return { servers: json['mcpServers'], warnings: json['warnings'] };
  };

  test('has its values when the Secret may be exposed', async () => {
    expect(await claimWith({ 'boxwright.dev/expose-to-tools': 'true' })).toEqual({
      servers: [
        {
          name: 'local',
          transport: 'stdio',
          command: 'node',
          args: ['server.js', '--key=k1'],
          env: { PLAIN: 'x', WORD: 'a w1' },
        },
      ],
      warnings: [],
    });
  });

  test.each([
    [
      'the annotation is missing',
      { 'boxwright.dev/hosts': 'mcp.example.com' },
      'Secret helper-secrets in namespace bw-lab may not be handed to the tools of a run: annotate it boxwright.dev/expose-to-tools=true if the code of the agent may have its values',
    ],
    ['there is no Secret', undefined, 'there is no Secret helper-secrets in namespace bw-lab: create it'],
  ])('is left out when %s', async (_name, annotations, why) => {
    expect(await claimWith(annotations)).toEqual({
      servers: [],
      warnings: [`MCP server local is left out: ${why}.`],
    });
  });
});
