/** The gateway's TLS server on a real socket: its certificate comes from a Secret, is renewed, and the stop is orderly. */
import type { IncomingMessage, ServerResponse } from 'node:http';
import { createCa, issueServerCertificate, type KeyPair } from '../../src/controllers/installation/certificates.js';
import { GatewayServer } from '../../src/gateway/http/server.js';
import { tlsFromSecret } from '../../src/gateway/http/tls.js';
import { Secrets } from '../../src/kube/core-types.js';
import { FakeClock } from '../builders/fake-clock.js';
import { httpsPost } from '../builders/https-post.js';
import { recordingLog } from '../builders/log.js';
import { RecordingApi } from '../builders/recording-api.js';

const NAME = 'boxwright-gateway.boxwright.svc';
const REF = { namespace: 'boxwright', name: 'boxwright-gateway-tls' };

async function setUp() {
  const now = Date.now();
  const ca = await createCa(now);
  const api = new RecordingApi();
  const clock = new FakeClock();
  const { log, messages } = recordingLog();
  const answers: ((text: string) => void)[] = [];
  const handler = {
    handle(_request: IncomingMessage, response: ServerResponse): Promise<void> {
      answers.push((text) =>
        response.writeHead(200, { 'content-type': 'application/json' }).end(JSON.stringify({ text })),
      );
      if (!hold.on) answers.pop()?.('hello');
      return Promise.resolve();
    },
  };
  const hold = { on: false };
  const server = new GatewayServer({
    port: 0,
    host: '127.0.0.1',
    tls: tlsFromSecret(api, REF),
    handler,
    clock,
    log,
  });
  const store = (pair: KeyPair) => {
    const data = { 'tls.crt': pair.cert, 'tls.key': pair.key, 'ca.crt': ca.cert };
    const encoded = Object.entries(data).map(([key, value]) => [key, Buffer.from(value).toString('base64')]);
    api.seed(Secrets, { apiVersion: '', kind: '', metadata: REF, data: Object.fromEntries(encoded) });
  };
  const issue = () => issueServerCertificate(ca, [NAME], now);
  const call = () => httpsPost({ port: server.port, path: '/', serverName: NAME, ca: ca.cert });
  return { api, clock, server, store, issue, call, messages, hold, answers };
}

const never = new AbortController().signal;

test('it waits for its certificate, then opens the port', async () => {
  const { clock, server, store, issue, call, messages } = await setUp();
  const starting = server.start(never);
  await clock.advance(3_000);
  expect(server.port).toBe(0);

  store(await issue());
  await clock.advance(10_000);
  await starting;

  expect((await call()).json).toEqual({ text: 'hello' });
  expect(messages()[0]).toBe('warn the certificate of the gateway is not there yet');
  await server.stop();
});

test('a start that is told to stop meanwhile ends without a port', async () => {
  const { clock, server } = await setUp();
  const stop = new AbortController();
  const starting = server.start(stop.signal);
  await clock.advance(1_000);
  stop.abort();
  await starting;

  expect(server.port).toBe(0);
  await server.stop();
});

test('a new certificate is used within a minute, without a restart; a broken Secret leaves the old one', async () => {
  const { api, clock, server, store, issue, call, messages } = await setUp();
  store(await issue());
  await server.start(never);
  const first = (await call()).fingerprint;

  store(await issue());
  await clock.advance(60_000);
  const second = (await call()).fingerprint;
  expect(second).not.toBe(first);

  api.vanish(Secrets, `${REF.namespace}/${REF.name}`);
  await clock.advance(60_000);
  expect((await call()).fingerprint).toBe(second);
  expect(messages()).toEqual([
    'info the certificate of the gateway was renewed',
    'warn the certificate of the gateway could not be read again; the old one stays',
  ]);
  await server.stop();
});

test('a client that expects another name or another CA does not talk to it', async () => {
  const { server, store, issue } = await setUp();
  store(await issue());
  await server.start(never);
  const other = await createCa(Date.now());

  const call = (serverName: string, ca: string) => httpsPost({ port: server.port, path: '/', serverName, ca });
  await expect(call(NAME, other.cert)).rejects.toThrow(/certificate/i);
  await server.stop();
});

test('a stop lets answers in work end', async () => {
  const { server, store, issue, call, hold, answers } = await setUp();
  store(await issue());
  await server.start(never);
  hold.on = true;
  const calling = call();
  while (answers.length === 0) await new Promise((resolve) => setImmediate(resolve));

  const stopping = server.stop();
  expect(server.isDraining).toBe(true);
  answers[0]?.('late');

  expect((await calling).json).toEqual({ text: 'late' });
  await stopping;
});
