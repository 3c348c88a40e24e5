/** The question before the claim, against images of ours, older ones, and such that are none. */
import { createServer } from 'node:net';
import type { Server, Socket } from 'node:net';
import { join } from 'node:path';
import { FakeClock } from '../../test/builders/fake-clock.js';
import { temporaryDirectories } from '../../test/builders/workspace.js';
import { encodeFrame } from '../protocol/tools-socket.js';
import { systemClock } from '../runtime/clock.js';
import { askForTools, OFFER_SECONDS, offers } from './tools-offer.js';

const temporary = temporaryDirectories();
const open: Server[] = [];
afterEach(() => {
  for (const server of open.splice(0)) server.close();
});

/** A tools container that does this with each connection. */
async function tools(serve: (socket: Socket) => void): Promise<string> {
  const path = join(await temporary('offer'), 'tools.sock');
  const server = createServer((socket) => {
    socket.on('error', () => undefined);
    serve(socket);
  });
  open.push(server);
  await new Promise<void>((resolve) => server.listen(path, resolve));
  return path;
}
const ask = (socketPath: string, signal = new AbortController().signal, clock = systemClock) =>
  askForTools({ socketPath, clock }, signal);

test('the tools of the image are what it answers, those of a newer one too', async () => {
  const path = await tools((socket) => socket.end(encodeFrame({ type: 'offer', tools: ['shell', 'later_tool'] })));
  const offered = await ask(path);
  expect(offered).toEqual(['shell', 'later_tool']);
  expect([offers(offered, 'shell'), offers(offered, 'browser_navigate')]).toEqual([true, false]);
});

test.each([
  ['drops the connection, as an older image', (socket: Socket) => socket.destroy()],
  ['says what is no frame', (socket: Socket) => socket.end('HTTP/1.1 400 Bad Request\r\n\r\n')],
  ['answers something else', (socket: Socket) => socket.end(encodeFrame({ type: 'started' }))],
])('nothing is known of an image that %s', async (_name, serve) => {
  const offered = await ask(await tools(serve));
  expect(offered).toBe('unknown');
  expect(offers(offered, 'browser_navigate')).toBeUndefined();
});

test('where nothing listens, or what listens says nothing, the wait ends', async () => {
  const clock = new FakeClock();
  const nowhere = ask('/nowhere/tools.sock', undefined, clock);
  const asked = Promise.withResolvers<void>();
  const mute = ask(await tools((socket) => socket.once('data', () => asked.resolve())), undefined, clock);
  await asked.promise;
  for (let second = 0; second <= OFFER_SECONDS * 20; second++) {
    await clock.advance(50);
    await new Promise((resolve) => setImmediate(resolve));
  }
  expect(await Promise.all([nowhere, mute])).toEqual(['silent', 'silent']);
});

test('a pod that is told to stop waits no longer', async () => {
  expect(await ask('/nowhere/tools.sock', AbortSignal.abort())).toBe('silent');
  const stop = new AbortController();
  const path = await tools((socket) => socket.once('data', () => stop.abort()));
  expect(await ask(path, stop.signal)).toBe('silent');
});
