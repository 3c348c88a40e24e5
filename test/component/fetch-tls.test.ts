/** The tool `fetch` over TLS: the name of the address is verified, against the authorities that Node trusts. */
import { createServer } from 'node:https';
import type { Server } from 'node:https';
import type { AddressInfo } from 'node:net';
import { getCACertificates, setDefaultCACertificates } from 'node:tls';
import { createCa, issueServerCertificate } from '../../src/controllers/installation/certificates.js';
import type { KeyPair } from '../../src/controllers/installation/certificates.js';
import { systemClock } from '../../src/runtime/clock.js';
import { createToolExecutor } from '../../src/runner/tools/executor.js';
import { createShell } from '../../src/runner/tools/shell.js';
import { RIPGREP } from '../builders/ripgrep.js';
import { webAccess } from '../builders/web-access.js';

const trusted = getCACertificates('default');
let ca: KeyPair;
let server: Server;

beforeAll(async () => {
  ca = await createCa(Date.now());
  const { cert, key } = await issueServerCertificate(ca, ['page.example'], Date.now());
  server = createServer({ cert, key }, (_request, response) => {
    response.writeHead(200, { 'content-type': 'text/plain' }).end('over TLS');
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
});
afterEach(() => setDefaultCACertificates(trusted));
afterAll(async () => {
  await new Promise((resolve) => server.close(resolve));
});

async function fetchFrom(host: string): Promise<Record<string, unknown>> {
  const web = webAccess({ isAllowed: () => true });
  const execute = createToolExecutor({
    ripgrep: RIPGREP,
    shell: createShell({ home: '/nowhere', clock: systemClock }),
    workspace: '/nowhere',
    home: '/nowhere',
    clock: systemClock,
    web,
  });
  const input = { url: `https://${host}:${(server.address() as AddressInfo).port}/` };
  const call = { type: 'call' as const, run: 'ada-1', call: 1, tool: 'fetch' as const, input };
  return (await execute(call, new AbortController().signal)).result;
}

test('an authority that nobody trusts is refused', async () => {
  expect((await fetchFrom('page.example'))['error']).toMatch(
    /^page\.example:\d+ could not be fetched: the connection failed \(\w*(CERT|SIGNATURE)\w*\)\.$/,
  );
});

test('the certificate must carry the name', async () => {
  setDefaultCACertificates([ca.cert]);
  expect(await fetchFrom('page.example')).toMatchObject({ status: 200, content: 'over TLS' });
  expect((await fetchFrom('other.example'))['error']).toMatch(/ERR_TLS_CERT_ALTNAME_INVALID/);
});
