/** TLS with the installation's own CA: the Service's name is verified on every address, and nothing else is trusted. */
import { FakeClock } from '../builders/fake-clock.js';
import { startFakeGateway } from '../builders/fake-gateway.js';
import type { FakeGateway } from '../builders/fake-gateway.js';
import { createCa, issueServerCertificate } from '../../src/controllers/installation/certificates.js';
import { GatewayClient } from '../../src/runner/gateway-client.js';
import { createRunnerLog } from '../../src/runner/log.js';

const NAME = 'boxwright-gateway.boxwright.svc';
let gateway: FakeGateway;
let otherCa: string;
let ca: string;

beforeAll(async () => {
  const now = Date.now();
  const authority = await createCa(now);
  ca = authority.cert;
  otherCa = (await createCa(now)).cert;
  gateway = await startFakeGateway({ tls: await issueServerCertificate(authority, [NAME], now) });
});
afterAll(() => gateway.close());

/** One request to the pod's address; gives the status, or why there was none. */
async function ask(options: { ca: string; serverName: string; owned?: boolean }): Promise<string> {
  const clock = new FakeClock();
  const client = new GatewayClient({
    url: new URL(gateway.url),
    serverName: options.serverName,
    ca: options.ca,
    readToken: () => Promise.resolve('token'),
    clock,
    random: () => 0.5,
    log: createRunnerLog('runner', clock, () => undefined),
  });
  if (options.owned === true) client.ownedBy(gateway.address, 1);
  try {
    const reply = await client.send({
      path: '/internal/v1/runs/bw-b/helper-1/events',
      body: () => '{"epoch":1,"events":[]}',
      signal: new AbortController().signal,
      retryOn: [],
      attemptMs: 60_000,
      giveUpAt: 0,
    });
    return String(reply.status);
  } catch (error) {
    return (error as Error).message;
  } finally {
    client.close();
  }
}

test('our CA and the name of the Service are accepted, on the address of a pod too', async () => {
  expect(await ask({ ca, serverName: NAME })).toBe('200');
  expect(await ask({ ca, serverName: NAME, owned: true })).toBe('200');
  expect(await ask({ ca: `${otherCa}\n${ca}`, serverName: NAME })).toBe('200');
});

test('another CA or another name is refused before the token is sent', async () => {
  const before = gateway.calls.length;
  expect(await ask({ ca: otherCa, serverName: NAME })).toMatch(/last: (UNABLE_TO_VERIFY|SELF_SIGNED|CERT_SIGNATURE)/);
  expect(await ask({ ca, serverName: 'api.boxwright.svc' })).toContain('last: ERR_TLS_CERT_ALTNAME_INVALID');
  expect(gateway.calls).toHaveLength(before);
});
