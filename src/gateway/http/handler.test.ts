import { once } from 'node:events';
import { createServer } from 'node:http';
import { connect, type Socket } from 'node:net';
import type { AddressInfo } from 'node:net';
import { runPath } from '../../protocol/run.js';
import { GatewayWorld, NAMESPACE } from '../../../test/builders/gateway-world.js';

function setUp() {
  const world = new GatewayWorld();
  return { world, gateway: world.startGateway(), pod: world.addRun('helper-1') };
}

test('a body above the bound gets its answer, and the connection ends', async () => {
  const { world, gateway, pod } = setUp();
  const server = createServer((request, response) => void gateway.gateway.handler.handle(request, response));
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  const { port } = server.address() as AddressInfo;

  const reply = await fetch(`http://127.0.0.1:${port}${runPath(NAMESPACE, 'helper-1', 'claim')}`, {
    method: 'POST',
    headers: { authorization: `Bearer ${pod.token}` },
    body: 'x'.repeat(300_000),
  });

  expect(reply.status).toBe(413);
  expect(reply.headers.get('connection')).toBe('close');
  expect(await reply.json()).toEqual({ error: 'the body is larger than 65536 bytes' });
  expect(world.api.writes).toEqual([]);
  await new Promise((resolve) => server.close(resolve));
});

test('bodies that come slowly make room for others, and may be sent again', async () => {
  const { world, gateway, pod } = setUp();
  const server = createServer((request, response) => void gateway.gateway.handler.handle(request, response));
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  const { port } = server.address() as AddressInfo;
  const path = runPath(NAMESPACE, 'helper-1', 'events');
  const head = `POST ${path} HTTP/1.1\r\nhost: x\r\nauthorization: Bearer ${pod.token}\r\n`;
  const sockets = Array.from({ length: 4 }, () => connect(port, '127.0.0.1'));
  const first = once(sockets[0] as Socket, 'data');
  for (const [index, socket] of sockets.entries()) {
    socket.write(`${head}content-length: 9000000\r\n\r\n${'x'.repeat(8 * 1024 * 1024)}`);
    // Each has come before the next one begins, so that the first is the slowest.
    if (index < 2) await untilHeld((bytes) => bytes >= (index + 1) * 8 * 1024 * 1024);
  }

  const [answer] = (await first) as [Buffer];
  expect(answer.toString()).toMatch(/^HTTP\/1.1 503 /);
  expect(answer.toString()).toMatch(/retry-after: 2/i);
  expect(answer.toString()).toMatch(/connection: close/i);
  for (const socket of sockets) socket.destroy();
  await new Promise((resolve) => server.close(resolve));
  await untilHeld((bytes) => bytes === 0);

  async function untilHeld(isSo: (bytes: number) => boolean): Promise<void> {
    while (!isSo(world.bodies.bytes)) await new Promise((resolve) => setImmediate(resolve));
  }
});

test.each([
  ['an unknown path', { method: 'POST', url: '/healthz' }, { status: 404, json: { error: 'there is no such call' } }],
  [
    'another method',
    { method: 'GET', url: runPath(NAMESPACE, 'helper-1', 'claim') },
    { status: 405, headers: { allow: 'POST' }, json: { error: 'use POST' } },
  ],
])('%s is refused before a token is looked at', async (_name, call, expected) => {
  const { world, gateway, pod } = setUp();

  expect(await world.send(gateway, { ...call, token: pod.token })).toMatchObject(expected);
  expect(world.api.reviewed).toEqual([]);
});

test('a body that is not JSON gets 400', async () => {
  const { world, gateway, pod } = setUp();

  const reply = await world.post(gateway, runPath(NAMESPACE, 'helper-1', 'claim'), undefined, pod.token);

  expect(reply).toMatchObject({ status: 400, json: { error: 'the body is not JSON' } });
});

test.each([
  ['of many values', { events: Array.from({ length: 60_000 }, () => []) }, 'the body has more than 100000 values'],
  ['that nests', { events: [JSON.parse('['.repeat(64) + ']'.repeat(64))] }, 'the body nests deeper than 64'],
  [
    'with many faults',
    { epoch: 1, events: Array.from({ length: 1000 }, () => ({ type: 'tool' })) },
    'the request does not fit the protocol at events.0.seq (invalid_type)',
  ],
])('a report %s gets 400', async (_what, body, error) => {
  const { world, gateway, pod } = setUp();

  const reply = await world.post(gateway, runPath(NAMESPACE, 'helper-1', 'events'), body, pod.token);

  expect(reply).toMatchObject({ status: 400, json: { error } });
});

test('requests are counted by route pattern, without namespace or run', async () => {
  const { world, gateway, pod } = setUp();
  await world.claim(gateway, pod);
  await world.chat(gateway, pod, {});

  const text = await gateway.registry.metrics();
  expect(text).toContain('{route="/internal/v1/runs/:namespace/:run/claim",method="POST",status="200"} 1');
  expect(text).toContain('{route="/gateway/:provider",method="POST",status="400"} 1');
  expect(text).toContain('boxwright_gateway_runs_claimed_total 1');
  expect(text).toContain('boxwright_gateway_runs_served 1');
  expect(text).not.toMatch(/helper|bw-lab/);
});
