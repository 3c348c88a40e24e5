/**
 * Whatever a run sends to its gateway: an answer that says what is wrong, never a fault of ours, no write for what was
 * refused, and nothing of it stays in memory. The same bodies for every call, so that a new one is tried as well.
 */
import { createServer, type Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import * as fc from '../builders/properties.js';
import { GATEWAY_TOOLS } from '../../src/protocol/gateway-tools.js';
import { mcpPath } from '../../src/protocol/mcp.js';
import { runPath } from '../../src/protocol/run.js';
import { GatewayWorld, NAMESPACE, type GatewayPod, type RunPod } from '../builders/gateway-world.js';

const RUN = 'helper-1';
/** Statuses that tell the runner that asking again is of no use. */
const REFUSED = /\b(400|404|409|413|421)$/;
const CHAT = '/gateway/boxwright/v1/chat/completions';
const CALLS = {
  claim: runPath(NAMESPACE, RUN, 'claim'),
  events: runPath(NAMESPACE, RUN, 'events'),
  finish: runPath(NAMESPACE, RUN, 'finish'),
  tool: runPath(NAMESPACE, RUN, 'tool'),
  model: CHAT,
  mcp: mcpPath('docs'),
};

let world: GatewayWorld;
let gateway: GatewayPod;
let pod: RunPod;
let server: Server;

beforeEach(async () => {
  const docs = { name: 'docs', transport: 'http', url: 'https://docs.example.com/mcp' };
  world = new GatewayWorld({ agent: { mcpServers: [docs] } });
  gateway = world.startGateway();
  pod = world.addRun(RUN);
  server = createServer((request, response) => void gateway.gateway.handler.handle(request, response));
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  expect((await world.claim(gateway, pod)).status).toBe(200);
  world.api.clearRecords();
});

afterEach(async () => {
  server.closeAllConnections();
  await new Promise((resolve) => server.close(resolve));
});

/** Its status; what every call must hold is looked at here. */
async function send(path: string, body: string | Buffer, headers: Record<string, string> = {}): Promise<number> {
  const { port } = server.address() as AddressInfo;
  const reply = await fetch(`http://127.0.0.1:${port}${path}`, {
    method: 'POST',
    headers: { authorization: `Bearer ${pod.token}`, ...headers },
    body: new Uint8Array(Buffer.from(body)),
  });
  const text = await reply.text();
  expect(reply.status).not.toBe(500);
  if (reply.status >= 400) expect(Object.keys(JSON.parse(text) as object)).toContain('error');
  expect(world.bodies.bytes).toBe(0);
  return reply.status;
}

const many = (entry: string, count: number) => Array<string>(count).fill(entry).join(',');
const names = (count: number) => Array.from({ length: count }, (_, n) => `"k${n}":0`).join(',');

/** Of JSON and of what is none, as large as it is taken and larger. */
const BODIES: readonly (readonly [string, string | Buffer])[] = [
  ['nothing', ''],
  ['white space', ' '.repeat(60_000)],
  ['no JSON', '{'],
  ['no UTF-8', Buffer.from([0x22, 0xff, 0x22])],
  ['null', 'null'],
  ['a number too large', '1e400'],
  ['a list', '[]'],
  ['depth', '['.repeat(50_000)],
  ['depth that is taken', `{"events":${'['.repeat(60)}${']'.repeat(60)}}`],
  ['many values', `{"epoch":1,"events":[${many('0', 25_000)}]}`],
  ['many lists', `{"epoch":1,"events":[${many('[]', 20_000)}],"messages":[${many('{}', 20_000)}]}`],
  ['too many values', `[${many('0', 120_000)}]`],
  ['many names', `{"epoch":1,${names(4000)}}`],
  ['the same name again', `{${many('"epoch":1', 6000)}}`],
  ['names of the language', '{"__proto__":{"epoch":1},"constructor":{"prototype":1},"epoch":1,"events":[]}'],
  ['numbers that no program counts with', '{"epoch":1e308,"protocol":-1e308,"call":9007199254740993,"events":[]}'],
  ['a name of 60,000 characters', `{"${'n'.repeat(60_000)}":1}`],
  ['a text of backslashes', `{"epoch":"${'\\\\'.repeat(30_000)}"}`],
  ['a text of line separators', `{"podUid":"${'\u2028'.repeat(20_000)}","tool":"${'\u2028'.repeat(1000)}"}`],
];

describe.each(Object.entries(CALLS))('%s', (_call, path) => {
  test('takes none of the hostile bodies, and writes nothing', async () => {
    for (const [what, body] of BODIES) {
      const status = await send(path, body, what === 'no JSON' ? { 'content-encoding': 'gzip' } : {});
      // An empty list of events of the right epoch is a heartbeat, whatever stands beside it.
      const isHeartbeat = path === CALLS.events && what === 'names of the language';
      if (!isHeartbeat) expect(`${what}: ${status}`).toMatch(REFUSED);
    }
    expect(world.api.writes).toEqual([]);
  });

  test('takes no body that fuzzing makes of JSON values', async () => {
    const value = fc.jsonValue({ maxDepth: 3 });
    const known = [
      'epoch',
      'events',
      'outcome',
      'call',
      'tool',
      'input',
      'messages',
      'model',
      'method',
      'params',
      'id',
    ];
    const body = fc.dictionary(fc.oneof(fc.constantFrom(...known), fc.string()), value, { maxKeys: 8 });
    await fc.assert(
      fc.asyncProperty(body, async (json) => {
        expect(String(await send(path, JSON.stringify(json)))).toMatch(REFUSED);
      }),
      { numRuns: 40 },
    );
    expect(world.api.writes).toEqual([]);
  });
});

test.each(Object.keys(GATEWAY_TOOLS))('tool %s says what is wrong with any input', async (tool) => {
  let call = 0;
  const properties = Object.keys(GATEWAY_TOOLS[tool as keyof typeof GATEWAY_TOOLS].input.shape);
  const input = fc.oneof(
    fc.jsonValue({ maxDepth: 2 }),
    fc.dictionary(
      fc.constantFrom('other', ...properties),
      fc.oneof(fc.jsonValue({ maxDepth: 1 }), fc.constant('x'.repeat(70_000))),
    ),
  );
  await fc.assert(
    fc.asyncProperty(input, async (given) => {
      call += 1;
      expect(await send(CALLS.tool, JSON.stringify({ epoch: 1, call, tool, input: given }))).toBe(200);
    }),
    { numRuns: 15 },
  );
});
