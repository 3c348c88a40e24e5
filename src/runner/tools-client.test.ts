/** The runner's side of the tools socket against peers that behave badly: each costs one failed call and nothing more. */
import { createServer } from 'node:net';
import type { Server, Socket } from 'node:net';
import { join } from 'node:path';
import { FakeClock } from '../../test/builders/fake-clock.js';
import { temporaryDirectories } from '../../test/builders/workspace.js';
import { encodeFrame, FrameDecoder } from '../protocol/tools-socket.js';
import { systemClock } from '../runtime/clock.js';
import type { Clock } from '../runtime/clock.js';
import { createToolsClient } from './tools-client.js';

const temporary = temporaryDirectories();
const servers: { server: Server; sockets: Socket[] }[] = [];
afterEach(() => {
  for (const { server, sockets } of servers.splice(0)) {
    server.close();
    for (const socket of sockets) socket.destroy();
  }
});

/** A peer that does as the test says with each connection. */
async function peer(onConnection: (socket: Socket) => void) {
  const path = join(await temporary('socket'), 'tools.sock');
  const sockets: Socket[] = [];
  const server = createServer({ allowHalfOpen: true }, (socket) => {
    sockets.push(socket);
    socket.on('error', () => undefined);
    onConnection(socket);
  });
  servers.push({ server, sockets });
  await new Promise<void>((resolve) => server.listen(path, resolve));
  return { path, sockets };
}

function call(path: string, options: { clock?: Clock; signal?: AbortSignal; input?: Record<string, unknown> } = {}) {
  const client = createToolsClient({ socketPath: path, run: 'helper-1', clock: options.clock ?? systemClock });
  const input = options.input ?? { command: 'ls' };
  return client.call({ tool: 'shell', input }, options.signal ?? new AbortController().signal);
}

const failure = (error: string) => ({ isError: true, result: { error } });
const broken = failure('The tools container broke the protocol of the tools socket.');
const ended = failure('The tools container ended without an answer; it may have run out of memory.');
const frame = (text: string) => {
  const length = Buffer.alloc(4);
  length.writeUInt32BE(Buffer.byteLength(text));
  return Buffer.concat([length, Buffer.from(text)]);
};

test('a call is one frame, and its answer is given', async () => {
  const asked: unknown[] = [];
  const { path } = await peer((socket) => {
    const decoder = new FrameDecoder();
    socket.on('data', (chunk: Buffer) => {
      asked.push(...decoder.push(chunk));
      socket.end(encodeFrame({ type: 'result', isError: false, result: { exitCode: 0 } }));
    });
  });
  expect(await call(path)).toEqual({ isError: false, result: { exitCode: 0 } });
  expect(asked).toEqual([{ type: 'call', run: 'helper-1', call: 1, tool: 'shell', input: { command: 'ls' } }]);
});

test.each([
  ['garbage', Buffer.from('HTTP/1.1 200 OK\r\n\r\n')],
  ['an oversized frame', Buffer.from([0x7f, 0, 0, 0])],
  ['JSON nested too deep', frame(`{"type":"result","isError":false,"result":${'['.repeat(40)}${']'.repeat(40)}}`)],
  ['a frame of another shape', frame('{"type":"result","isError":"no","result":{}}')],
  ['a frame that is no object', frame('7')],
  ['two answers', Buffer.concat([frame('{"type":"result","isError":false,"result":{}}'), frame('{}')])],
])('%s fails the call', async (_name, bytes) => {
  const { path, sockets } = await peer((socket) => socket.write(bytes));
  expect(await call(path)).toEqual(broken);
  await closed(sockets[0]);
});

test('endless frames end the connection at the first one too many', async () => {
  const { path, sockets } = await peer((socket) => {
    const flood = () => {
      while (!socket.destroyed && socket.write(frame('{"a":1}')));
      if (!socket.destroyed) socket.once('drain', flood);
    };
    flood();
  });
  expect(await call(path)).toEqual(broken);
  await closed(sockets[0]);
});

test('half a frame and then nothing ends at the bound of the call', async () => {
  const { path, sockets } = await peer((socket) => socket.write(frame('{"type":"result"').subarray(0, 9)));
  const clock = new FakeClock();
  const calling = call(path, { clock, input: { command: 'ls', timeoutSeconds: 5 } });
  await eventually(() => sockets.length === 1);
  await clock.advance(15_000);
  expect(await calling).toEqual(failure('The tool gave no answer within 15 seconds and was given up.'));
  await closed(sockets[0]);
  expect(clock.pending).toBe(0);
});

test('a peer that never reads and never answers ends at the bound as well', async () => {
  const { path, sockets } = await peer((socket) => socket.pause());
  const clock = new FakeClock();
  const calling = call(path, { clock, input: { command: 'x'.repeat(60_000) } });
  await eventually(() => sockets.length === 1);
  await clock.advance(130_000);
  expect(await calling).toEqual(failure('The tool gave no answer within 130 seconds and was given up.'));
});

test('a connection that ends early fails the call', async () => {
  const { path } = await peer((socket) => socket.end(frame('{"type":"result"').subarray(0, 9)));
  expect(await call(path)).toEqual(ended);
});

test('a large answer is cut before the model sees it', async () => {
  const result = { output: 'x'.repeat(1_000_000) };
  const { path } = await peer((socket) => socket.end(encodeFrame({ type: 'result', isError: false, result })));
  const answer = await call(path);
  expect(answer.result['truncated']).toBe(true);
  expect(Buffer.byteLength(JSON.stringify(answer.result))).toBeLessThanOrEqual(96 * 1024);
});

test('names that mean something to JavaScript stay data', async () => {
  const { path } = await peer((socket) =>
    socket.end(frame('{"type":"result","isError":false,"result":{"__proto__":{"isError":true},"toJSON":1}}')),
  );
  const answer = await call(path);
  expect(answer.isError).toBe(false);
  expect(({} as Record<string, unknown>)['isError']).toBeUndefined();
});

test('an abort closes its half of the connection, and what the tool came to is the result', async () => {
  const { path, sockets } = await peer((socket) => {
    socket.resume();
    socket.on('end', () =>
      socket.end(encodeFrame({ type: 'result', isError: true, result: { output: 'half', signal: 'SIGTERM' } })),
    );
  });
  const abort = new AbortController();
  const calling = call(path, { signal: abort.signal });
  await eventually(() => sockets.length === 1);
  abort.abort(new Error('cancelled'));
  expect(await calling).toEqual({ isError: true, result: { output: 'half', signal: 'SIGTERM' } });
});

test('after an abort a peer has 4 s to answer, and one that closes at once says nothing', async () => {
  const stopped = failure('The run was stopped, and the tool did not say what it came to.');
  for (const isSilent of [true, false]) {
    const clock = new FakeClock();
    const { path, sockets } = await peer((socket) => {
      socket.resume();
      if (!isSilent) socket.on('end', () => socket.destroy());
    });
    const abort = new AbortController();
    const calling = call(path, { signal: abort.signal, clock });
    await eventually(() => sockets.length === 1);
    abort.abort(new Error('cancelled'));
    if (isSilent) await clock.advance(4000);
    expect(await calling).toEqual(stopped);
    await closed(sockets[0]);
    expect(clock.pending).toBe(0);
  }
});

test('an abort before the call begins executes nothing', async () => {
  const { path } = await peer(() => undefined);
  const aborted = await call(path, { signal: AbortSignal.abort() });
  expect(aborted).toEqual(failure('The run was stopped before the tool began.'));
});

test('tools that are not there yet are waited for 10 s', async () => {
  const clock = new FakeClock();
  const calling = call(join(await temporary('socket'), 'tools.sock'), { clock });
  const state = { done: false };
  void calling.then(() => (state.done = true));
  while (!state.done) await clock.advance(50);
  expect(await calling).toEqual(failure('The tools container does not answer; it may be starting again.'));
  expect(clock.monotonic()).toBeGreaterThanOrEqual(10_000);
  expect(clock.monotonic()).toBeLessThan(20_000);
});

test('an input that does not fit into a frame is refused without a connection', async () => {
  const { path, sockets } = await peer(() => undefined);
  const input = { command: '\u0000'.repeat(300_000) };
  expect(await call(path, { input })).toEqual(failure('The input of the tool is too large; send less at a time.'));
  expect(sockets).toEqual([]);
});

async function eventually(condition: () => boolean): Promise<void> {
  while (!condition()) await new Promise((resolve) => setImmediate(resolve));
}

/** Resolves once the other side has closed; the test's own time limit is the bound. */
async function closed(socket: Socket | undefined): Promise<void> {
  socket?.resume();
  await eventually(() => socket?.closed === true || socket?.readableEnded === true);
}
