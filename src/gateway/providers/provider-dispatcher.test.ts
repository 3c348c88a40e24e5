/** Calls of providers through the proxy of the installation. */
import { createServer, type Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import { request } from 'undici';
import { createProviderDispatcher } from './model-access.js';

const asked: string[] = [];
let proxy: Server;
let httpsProxy: string;

beforeAll(async () => {
  proxy = createServer();
  // Nothing behind it has to answer: what was asked for is enough.
  proxy.on('connect', ({ url = '' }, socket) => {
    asked.push(url);
    socket.end('HTTP/1.1 403 Forbidden\r\n\r\n');
  });
  await new Promise<void>((resolve) => void proxy.listen(0, '127.0.0.1', resolve));
  httpsProxy = `http://127.0.0.1:${(proxy.address() as AddressInfo).port}`;
});
afterAll(() => void proxy.close());
beforeEach(() => void asked.splice(0));

/** The hosts for which the proxy was asked. */
async function hostsAsked(url: string, settings: Parameters<typeof createProviderDispatcher>[0]): Promise<string[]> {
  const dispatcher = createProviderDispatcher(settings);
  await request(url, { dispatcher }).catch(() => undefined);
  await dispatcher.destroy();
  return [...asked];
}

test('https goes through the proxy, which resolves the name', async () => {
  expect(await hostsAsked('https://models.invalid/v1', { httpsProxy })).toEqual(['models.invalid:443']);
});

test.each([
  ['a named host', 'https://models.invalid:1/v1'],
  ['a host below a named domain', 'https://eu.models.invalid:1/v1'],
  ['a name of the cluster', 'https://vllm.models.svc:1/v1'],
  ['a whole name of the cluster', 'https://vllm.models.svc.cluster.local:1/v1'],
  ['plain http', 'http://other.invalid:1/v1'],
])('%s is called directly', async (_what, url) => {
  expect(await hostsAsked(url, { httpsProxy, noProxy: ['models.invalid', '.models.invalid'] })).toEqual([]);
});

test('without a setting there is no proxy', async () => {
  expect(await hostsAsked('https://models.invalid:1/v1', {})).toEqual([]);
});
