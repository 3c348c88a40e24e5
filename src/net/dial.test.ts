import { createServer } from 'node:net';
import type { AddressInfo, Server } from 'node:net';
import { AddressRefusedError, dial, systemResolve, targetOf } from './dial.js';
import { publicAddresses } from './public-address.js';

const never = new AbortController().signal;
let server: Server;
let port: number;
let accepted: string[];

beforeEach(async () => {
  accepted = [];
  server = createServer((socket) => {
    accepted.push(socket.localAddress ?? '');
    socket.end();
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  port = (server.address() as AddressInfo).port;
});

afterEach(async () => {
  await new Promise((resolve) => server.close(resolve));
});

test.each([
  ['http://a.example/x', 'a.example', 80],
  ['https://a.example/', 'a.example', 443],
  ['https://a.example:8443/', 'a.example', 8443],
  ['http://[::1]:8080/', '::1', 8080],
])('%s is connected to at host %s, port %d', (url, host, at) => {
  expect(targetOf(new URL(url))).toEqual({ host, port: at });
});

test.each(['127.0.0.1', '::1', '::ffff:127.0.0.1', 'localhost', 'localhost.', '127.1', '0x7f000001', '2130706433'])(
  'this machine as %s is refused without a connection',
  async (host) => {
    const dialer = { isAllowed: publicAddresses(), resolve: systemResolve };
    // Spellings that are no address go to the resolver, which knows some of them and not others.
    await expect(dial({ host, port }, dialer, never)).rejects.toThrow(
      /is not an address of the public internet|ENOTFOUND|EAI_AGAIN/,
    );
    expect(accepted).toEqual([]);
  },
);

test('a name that resolves to a private address is refused by its name', async () => {
  const dialer = { isAllowed: publicAddresses(), resolve: () => Promise.resolve(['10.0.0.7', '127.0.0.1']) };
  const failure = await dial({ host: 'rebind.example', port }, dialer, never).catch((error: unknown) => error);
  expect(failure).toBeInstanceOf(AddressRefusedError);
  expect((failure as Error).message).toBe('rebind.example is not an address of the public internet');
  expect(accepted).toEqual([]);
});

test('a name is resolved once: what it answers the next time does not count', async () => {
  const answers = [['127.0.0.2'], ['127.0.0.1']];
  let asked = 0;
  const dialer = {
    isAllowed: (address: string) => address === '127.0.0.2',
    resolve: () => Promise.resolve(answers[asked++] ?? []),
  };
  // Nothing listens on 127.0.0.2; the address that was refused is not connected to instead.
  await expect(dial({ host: 'rebind.example', port }, dialer, never)).rejects.toMatchObject({ code: 'ECONNREFUSED' });
  expect({ asked, accepted }).toEqual({ asked: 1, accepted: [] });
});

test('the next allowed address is tried, one that is not allowed is passed over', async () => {
  const dialer = {
    isAllowed: (address: string) => address !== '127.0.0.3',
    resolve: () => Promise.resolve(['127.0.0.3', '127.0.0.2', '127.0.0.1']),
  };
  const socket = await dial({ host: 'many.example', port }, dialer, never);
  expect(socket.remoteAddress).toBe('127.0.0.1');
  socket.destroy();
});

test('an abort ends it with its reason', async () => {
  const abort = new AbortController();
  const dialer = {
    isAllowed: () => true,
    resolve: () => {
      abort.abort(new Error('enough'));
      return Promise.resolve(['127.0.0.1']);
    },
  };
  await expect(dial({ host: 'slow.example', port }, dialer, abort.signal)).rejects.toThrow('enough');
  expect(accepted).toEqual([]);
});
