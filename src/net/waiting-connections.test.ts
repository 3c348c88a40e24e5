import { once } from 'node:events';
import { createServer, type ServerResponse } from 'node:http';
import { connect, type AddressInfo, type Socket } from 'node:net';
import { limitWaitingConnections } from './waiting-connections.js';

const held: ServerResponse[] = [];
const server = createServer((request, response) => {
  if (request.url === '/hold') held.push(response);
  else response.end('ok');
});
limitWaitingConnections(server, 3);
const sockets: Socket[] = [];

beforeAll(() => new Promise<void>((resolve) => server.listen(0, resolve)));
afterEach(async () => {
  for (const response of held.splice(0)) response.end();
  const opened = sockets.splice(0);
  const closed = opened.filter((socket) => !socket.closed).map((socket) => once(socket, 'close'));
  for (const socket of opened) socket.destroy();
  await Promise.all(closed);
});
afterAll(() => new Promise((resolve) => server.close(resolve)));

/** A connection that the server has seen. */
async function open(localAddress = '127.0.0.1'): Promise<Socket> {
  const { port } = server.address() as AddressInfo;
  const seen = once(server, 'connection');
  const socket = connect({ port, host: '127.0.0.1', localAddress });
  socket.on('error', () => undefined).resume();
  sockets.push(socket);
  await seen;
  return socket;
}

async function call(socket: Socket, path: string): Promise<void> {
  const seen = once(server, 'request');
  socket.write(`GET ${path} HTTP/1.1\r\nhost: x\r\n\r\n`);
  await seen;
}

test('beyond the maximum the one that has waited longest goes', async () => {
  const [first, second] = [await open(), await open()];
  first.write('GET / HTTP/1.1\r\nslow: ');
  await open();
  await open();
  await once(first, 'close');
  expect(second.closed).toBe(false);
});

test('of the address that has most', async () => {
  const lonely = await open('127.0.0.2');
  const [first] = [await open(), await open()];
  await open();
  await once(first, 'close');
  expect(lonely.closed).toBe(false);
});

test('one with a call in work stays, and waits again after its answer', async () => {
  const busy = await open();
  await call(busy, '/hold');
  const idle = [await open(), await open(), await open()];
  await open();
  await once(idle[0] as Socket, 'close');
  expect(busy.closed).toBe(false);

  const answered = once(busy, 'data');
  held.splice(0).forEach((response) => response.end('done'));
  await answered;
  await once(idle[1] as Socket, 'close');
  expect(busy.closed).toBe(false);
});

test('a call makes its connection the youngest', async () => {
  const [first, second] = [await open(), await open()];
  await open();
  const answered = once(first, 'data');
  await call(first, '/');
  await answered;
  await new Promise((resolve) => setImmediate(resolve));
  await open();
  await once(second, 'close');
  expect(first.closed).toBe(false);
});
