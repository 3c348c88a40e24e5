/** HTTP to addresses that users set: real servers and connections on loopback, which stands for the public internet here. */
import { createServer as createHttpServer } from 'node:http';
import type { RequestListener, Server } from 'node:http';
import { createServer as createHttpsServer } from 'node:https';
import type { AddressInfo } from 'node:net';
import { text } from 'node:stream/consumers';
import { createCa, issueServerCertificate } from '../../src/controllers/installation/certificates.js';
import { AddressRefusedError } from '../../src/net/dial.js';
import { publicAddresses } from '../../src/net/public-address.js';
import { UrlRefusedError, WebClient, type TrustedHost } from '../../src/net/web-client.js';

const NAME = 'mcp.example.com';
const never = new AbortController().signal;

let ca: string;
let https: Server;
let http: Server;
let connections: number;
let client: WebClient | undefined;

const answer: RequestListener = (request, response) => {
  if (request.url === '/moved') response.writeHead(302, { location: `http://127.0.0.1:${portOf(http)}/` }).end();
  else response.writeHead(200, { 'mcp-session-id': 's-1' }).end(`hello ${request.headers.host ?? ''}`);
};

beforeAll(async () => {
  const now = Date.now();
  const authority = await createCa(now);
  ca = authority.cert;
  https = createHttpsServer(await issueServerCertificate(authority, [NAME], now), answer);
  http = createHttpServer(answer);
  for (const server of [https, http]) {
    server.on('connection', () => (connections += 1));
    await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  }
});
beforeEach(() => (connections = 0));
afterEach(() => client?.close());
afterAll(async () => {
  for (const server of [https, http]) {
    server.closeAllConnections();
    await new Promise((resolve) => server.close(resolve));
  }
});

function portOf(server: Server): number {
  return (server.address() as AddressInfo).port;
}

interface Rules {
  isPublic?: (address: string) => boolean;
  resolve?: (host: string) => Promise<readonly string[]>;
}

function start({
  isPublic = publicAddresses(),
  resolve = () => Promise.resolve(['127.0.0.1']),
}: Rules = {}): WebClient {
  client = new WebClient({ isPublic, isTrusted: (address) => address === '127.0.0.1', resolve });
  return client;
}

async function get(web: WebClient, url: string, trusted?: TrustedHost) {
  const response = await web.request({
    url: new URL(url),
    method: 'POST',
    headers: {},
    body: '{}',
    signal: never,
    trusted,
  });
  return { status: response.status, session: response.header('mcp-session-id'), text: await text(response.body) };
}

test('a host that an operator named is asked at a private address, with its own CA, over kept connections', async () => {
  const web = start();
  const url = `https://${NAME}:${portOf(https)}/mcp`;
  const expected = { status: 200, session: 's-1', text: `hello ${NAME}:${portOf(https)}` };
  for (let asked = 0; asked < 5; asked++) expect(await get(web, url, { http: false, ca })).toEqual(expected);
  // The next request may begin before the connection of the one before is free.
  expect(connections).toBeLessThanOrEqual(2);
});

test('its certificate is checked', async () => {
  const web = start();
  await expect(get(web, `https://${NAME}:${portOf(https)}/`, { http: false })).rejects.toMatchObject({
    code: expect.stringMatching(/UNABLE_TO_VERIFY|SELF_SIGNED/),
  });
  await expect(get(web, `https://other.example.com:${portOf(https)}/`, { http: false, ca })).rejects.toMatchObject({
    code: 'ERR_TLS_CERT_ALTNAME_INVALID',
  });
});

test.each([
  ['the name of a private address', () => `https://${NAME}:${portOf(https)}/`],
  ['this machine', () => `https://127.0.0.1:${portOf(https)}/`],
  ['this machine as a number', () => `https://2130706433:${portOf(https)}/`],
  ['this machine in a mapped address', () => `https://[::ffff:127.0.0.1]:${portOf(https)}/`],
  ['the metadata service', () => 'https://169.254.169.254/latest/meta-data'],
  ['the API server', () => 'https://10.96.0.1/'],
])('%s is refused without a connection', async (_name, url) => {
  await expect(get(start(), url())).rejects.toThrow(AddressRefusedError);
  expect(connections).toBe(0);
});

test('what was allowed for one request is not for another to the same host', async () => {
  const web = start();
  const url = `https://${NAME}:${portOf(https)}/`;
  await get(web, url, { http: false, ca });
  await expect(get(web, url)).rejects.toThrow(AddressRefusedError);
  expect(connections).toBe(1);
});

test('a name that is rebound after the first connection is refused at the next', async () => {
  const answers = [['127.0.0.1'], ['127.0.0.2']];
  const web = start({
    isPublic: (address) => address === '127.0.0.1',
    resolve: () => Promise.resolve(answers.shift() ?? []),
  });
  await expect(get(web, `https://${NAME}:${portOf(https)}/`)).rejects.toMatchObject({ code: expect.any(String) });
  expect(connections).toBe(1);
  await expect(get(web, `https://${NAME}:${portOf(https)}/`)).rejects.toThrow(AddressRefusedError);
  expect(connections).toBe(1);
});

test('plain http and user names are refused, but http for a host that may', async () => {
  const web = start();
  const url = `http://${NAME}:${portOf(http)}/`;
  await expect(get(web, url)).rejects.toThrow(UrlRefusedError);
  await expect(get(web, url, { http: false })).rejects.toThrow('the address does not begin with https://');
  await expect(get(web, `https://me:secret@${NAME}/`)).rejects.toThrow('the address holds a user name');
  expect(connections).toBe(0);
  expect(await get(web, url, { http: true })).toMatchObject({ status: 200 });
});

test('a redirect is the answer and is not followed', async () => {
  const web = start();
  expect(await get(web, `https://${NAME}:${portOf(https)}/moved`, { http: true, ca })).toMatchObject({ status: 302 });
  expect(connections).toBe(1);
});
