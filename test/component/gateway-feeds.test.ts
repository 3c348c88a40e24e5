/** How an API pod asks a gateway pod what a run does now: over TLS with the installation's own CA, and never for long. */
import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { createServer, type Server } from 'node:https';
import type { AddressInfo } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { Registry } from 'prom-client';
import { createCa, issueServerCertificate, type KeyPair } from '../../src/controllers/installation/certificates.js';
import { GatewayFeeds } from '../../src/processes/gateway-feeds.js';
import type { FeedAnswer } from '../../src/protocol/feed.js';
import { FakeClock } from '../builders/fake-clock.js';
import { recordingLog } from '../builders/log.js';
import { userMessage } from '../builders/run-events.js';

const NAME = 'boxwright-gateway.boxwright.svc';
const ANSWER: FeedAnswer = {
  uid: 'uid-1',
  usage: { steps: 3, inputTokens: 30, outputTokens: 3, totalTokens: 33 },
  events: [userMessage(1, 'hello')],
  incomplete: false,
};

let authority: KeyPair;
let otherCa: string;
let server: Server;
let dir: string;
const seen: { url: string | undefined; authorization: string | undefined }[] = [];
let answer: { status: number; text: string } | 'hang';

beforeAll(async () => {
  authority = await createCa(Date.now());
  otherCa = (await createCa(Date.now())).cert;
  server = createServer(await issueServerCertificate(authority, [NAME], Date.now()), (request, response) => {
    seen.push({ url: request.url, authorization: request.headers.authorization });
    if (answer !== 'hang') response.writeHead(answer.status).end(answer.text);
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
});
afterAll(
  () =>
    new Promise((resolve) => {
      server.close(resolve);
      server.closeAllConnections();
    }),
);
beforeEach(async () => {
  dir = await mkdtemp(join(tmpdir(), 'access-'));
  await writeFile(join(dir, 'token'), 'api-token\n');
  await writeFile(join(dir, 'ca.crt'), authority.cert);
  seen.length = 0;
  answer = { status: 200, text: JSON.stringify(ANSWER) };
});
afterEach(() => rm(dir, { recursive: true }));

function setUp(serverName = NAME) {
  const clock = new FakeClock();
  const registry = new Registry();
  const { log, messages } = recordingLog();
  const feeds = new GatewayFeeds({ accessDir: dir, serverName, clock, registry, log });
  const run = {
    namespace: 'bw-lab',
    name: 'helper-1',
    gatewayAddress: `127.0.0.1:${(server.address() as AddressInfo).port}`,
  };
  const counted = async () => await registry.metrics();
  return { clock, feeds, run, messages, counted };
}

test('it shows its token and gets what the run does now', async () => {
  const { feeds, run, counted } = setUp();
  expect(await feeds.read(run)).toEqual(ANSWER);
  await writeFile(join(dir, 'token'), 'renewed');
  await feeds.read(run);
  const url = '/internal/v1/runs/bw-lab/helper-1/feed';
  expect(seen).toEqual([
    { url, authorization: 'Bearer api-token' },
    { url, authorization: 'Bearer renewed' },
  ]);
  expect(await counted()).toContain('boxwright_feed_reads_total{result="answered"} 2');
  await feeds.close();
});

test.each([
  ['refuses', { status: 404, text: '{"error":"this pod does not serve the run"}' }],
  ['stops', { status: 503, text: '' }],
  ['says something else', { status: 200, text: '<html>' }],
  ['says too much', { status: 200, text: 'x'.repeat(5 * 1024 * 1024) }],
])('a gateway that %s has no answer', async (_what, said) => {
  const { feeds, run, counted } = setUp();
  answer = said;
  expect(await feeds.read(run)).toBeUndefined();
  expect(await counted()).toContain('boxwright_feed_reads_total{result="failed"} 1');
  await feeds.close();
});

test('a gateway that does not answer is waited for no longer than a second', async () => {
  const { clock, feeds, run } = setUp();
  answer = 'hang';
  const reading = feeds.read(run);
  while (seen.length === 0) await new Promise((resolve) => setTimeout(resolve, 5));
  await clock.advance(1_000);
  expect(await reading).toBeUndefined();
  await feeds.close();
});

test('a gateway that is gone has no answer', async () => {
  const { feeds, run } = setUp();
  expect(await feeds.read({ ...run, gatewayAddress: '127.0.0.1:1' })).toBeUndefined();
  await feeds.close();
});

test('another CA, another name and a pod without access get no token out', async () => {
  const wrongName = setUp('boxwright-api.boxwright.svc');
  expect(await wrongName.feeds.read(wrongName.run)).toBeUndefined();
  const { feeds, run } = setUp();
  await writeFile(join(dir, 'ca.crt'), otherCa);
  expect(await feeds.read(run)).toBeUndefined();
  await rm(join(dir, 'ca.crt'));
  expect(await feeds.read(run)).toBeUndefined();
  expect(seen).toEqual([]);
  // The file is there a moment later: the controller of a fresh installation was still making it.
  await writeFile(join(dir, 'ca.crt'), authority.cert);
  expect(await feeds.read(run)).toEqual(ANSWER);
  await Promise.all([feeds.close(), wrongName.feeds.close()]);
});
