/** The proxy of the browser between real sockets of this machine. */
import { once } from 'node:events';
import { connect, createServer } from 'node:net';
import type { AddressInfo, Server, Socket } from 'node:net';
import { startFilteringProxy } from './filtering-proxy.js';
import type { FilteringProxy } from './filtering-proxy.js';

let remote: Server;
let sockets: Socket[];
let proxy: FilteringProxy;
let asked: PromiseWithResolvers<void>;
let found: PromiseWithResolvers<readonly string[]>;

beforeEach(async () => {
  sockets = [];
  remote = createServer((socket) => void sockets.push(socket.on('error', () => undefined).resume()));
  remote.listen(0, '127.0.0.1');
  await once(remote, 'listening');
  asked = Promise.withResolvers();
  found = Promise.withResolvers();
  const resolve = () => {
    asked.resolve();
    return found.promise;
  };
  proxy = await startFilteringProxy({ isAllowed: () => true, resolve });
});
afterEach(async () => {
  await proxy.close();
  for (const socket of sockets) socket.destroy();
  await new Promise((resolve) => remote.close(resolve));
});

test.each([
  ['a tunnel', (port: number) => `CONNECT slow.example:${port} HTTP/1.1\r\nhost: slow.example\r\n\r\n`],
  ['a request', (port: number) => `GET http://slow.example:${port}/ HTTP/1.1\r\nhost: slow.example\r\n\r\n`],
])('whoever gives %s up before its name is known leaves no connection behind', async (_name, first) => {
  const client = connect(Number(new URL(proxy.url).port), '127.0.0.1');
  client.write(first((remote.address() as AddressInfo).port));
  await asked.promise;
  client.resetAndDestroy();
  await once(client, 'close');
  for (let turn = 0; turn < 20; turn++) await new Promise((resolve) => setImmediate(resolve));
  found.resolve(['127.0.0.1']);
  const [opened] = (await once(remote, 'connection')) as [Socket];
  await once(opened, 'close');
});

test.each([
  ['a status that does not exist', 'HTTP/1.1 000 None\r\ncontent-length: 0\r\n\r\n'],
  ['trailers that cannot come', 'HTTP/1.1 200 OK\r\ncontent-length: 0\r\ntrailer: late\r\n\r\n'],
  ['a change of protocol', 'HTTP/1.1 101 Switching Protocols\r\nconnection: upgrade\r\nupgrade: other\r\n\r\n'],
])('a server that answers with %s ends its own connection alone', async (_name, answer) => {
  found.resolve(['127.0.0.1']);
  const client = connect(Number(new URL(proxy.url).port), '127.0.0.1').resume();
  const { port } = remote.address() as AddressInfo;
  client.write(`GET http://odd.example:${port}/ HTTP/1.1\r\nhost: odd.example\r\n\r\n`);
  const [opened] = (await once(remote, 'connection')) as [Socket];
  opened.write(answer);
  await once(client, 'close');
});
