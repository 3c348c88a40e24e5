/** The tools socket against peers that behave badly: each loses its own connection, and the next call works. */
import { stat, writeFile } from 'node:fs/promises';
import { connect } from 'node:net';
import type { Socket } from 'node:net';
import { join } from 'node:path';
import { FakeClock } from '../../../test/builders/fake-clock.js';
import { temporaryDirectories } from '../../../test/builders/workspace.js';
import { encodeFrame } from '../../protocol/tools-socket.js';
import type { ToolsCall } from '../../protocol/tools-socket.js';
import { createRunnerLog } from '../log.js';
import { createToolsClient } from '../tools-client.js';
import { askForTools } from '../tools-offer.js';
import { listenForCalls } from './server.js';
import type { ExecuteTool, ToolsServer } from './server.js';

const temporary = temporaryDirectories();
const clock = new FakeClock();
let server: ToolsServer;
let path: string;
let executed: { call: ToolsCall; signal: AbortSignal }[];
let execute: ExecuteTool;

beforeEach(async () => {
  path = join(await temporary('socket'), 'tools.sock');
  executed = [];
  execute = () => Promise.resolve({ isError: false, result: { ok: true } });
  server = await listenForCalls({
    socketPath: path,
    offered: ['shell', 'list'],
    execute: (call, signal) => {
      executed.push({ call, signal });
      return execute(call, signal);
    },
    runServer: () => Promise.resolve(),
    clock,
    log: createRunnerLog('tools', clock, () => undefined),
  });
});
afterEach(() => server.close());

const frame = encodeFrame({ type: 'call', run: 'helper-1', call: 1, tool: 'list', input: {} });
const rawFrame = (text: string) => Buffer.concat([Buffer.from([0, 0, 0, text.length]), Buffer.from(text)]);

async function open(): Promise<Socket> {
  const socket = connect(path);
  socket.on('error', () => undefined);
  socket.resume();
  await new Promise<void>((resolve) => socket.once('connect', resolve));
  return socket;
}
const closed = (socket: Socket) =>
  new Promise<void>((resolve) => void (socket.closed ? resolve() : socket.once('close', resolve)));
const callOnce = () =>
  createToolsClient({ socketPath: path, run: 'helper-1', clock }).call(
    { tool: 'list', input: {} },
    new AbortController().signal,
  );

test('the question what there is gets the tools of the image', async () => {
  const signal = new AbortController().signal;
  expect(await askForTools({ socketPath: path, clock }, signal)).toEqual(['shell', 'list']);
  expect(executed).toEqual([]);
});

test.each([
  ['garbage', Buffer.from('GET / HTTP/1.1\r\n\r\n')],
  ['an oversized frame', Buffer.from([0xff, 0, 0, 0])],
  ['JSON nested too deep', rawFrame(`${'['.repeat(40)}${']'.repeat(40)}`)],
  ['an unknown tool', rawFrame('{"type":"call","run":"a","call":1,"tool":"rm","input":{}}')],
  ['a run that is a path', rawFrame('{"type":"call","run":"../a","call":1,"tool":"list","input":{}}')],
])('%s closes the connection and executes nothing', async (_name, bytes) => {
  const socket = await open();
  socket.write(bytes);
  await closed(socket);
  expect(executed).toEqual([]);
  expect(await callOnce()).toEqual({ isError: false, result: { ok: true } });
});

test('half a call closes the connection after 10 s', async () => {
  const socket = await open();
  socket.write(frame.subarray(0, 7));
  await eventually(() => clock.pending > 0);
  await clock.advance(10_000);
  await closed(socket);
  expect(executed).toEqual([]);
});

test('a second frame cancels the call that is working', async () => {
  execute = (_call, signal) =>
    new Promise((resolve) => signal.addEventListener('abort', () => resolve({ isError: true, result: {} })));
  const socket = await open();
  socket.write(frame);
  await eventually(() => executed.length === 1);
  socket.write(frame);
  await closed(socket);
  await eventually(() => executed[0]?.signal.aborted === true);
  expect(executed).toHaveLength(1);
});

test('a runner that closes the connection cancels its call', async () => {
  execute = (_call, signal) =>
    new Promise((resolve) => signal.addEventListener('abort', () => resolve({ isError: true, result: {} })));
  const socket = await open();
  socket.write(frame);
  await eventually(() => executed.length === 1);
  socket.destroy();
  await eventually(() => executed[0]?.signal.aborted === true);
});

test('a runner that closes its half alone stops its call, and gets what there is', async () => {
  execute = (_call, signal) =>
    new Promise((resolve) =>
      signal.addEventListener('abort', () => resolve({ isError: true, result: { output: 'half' } })),
    );
  const abort = new AbortController();
  const calling = createToolsClient({ socketPath: path, run: 'helper-1', clock }).call(
    { tool: 'list', input: {} },
    abort.signal,
  );
  await eventually(() => executed.length === 1);
  abort.abort();
  expect(await calling).toEqual({ isError: true, result: { output: 'half' } });
});

test('a peer that closes its half without a call is closed', async () => {
  const socket = await open();
  socket.end(frame.subarray(0, 7));
  await closed(socket);
  expect(executed).toEqual([]);
});

test('more than 36 connections are not served, and those that wait do not block for ever', async () => {
  const waiting = await Promise.all(Array.from({ length: 36 }, open));
  const refused = await open();
  await closed(refused);
  await clock.advance(10_000);
  await Promise.all(waiting.map(closed));
  expect(await callOnce()).toMatchObject({ isError: false });
});

test('closing stops the call that is working', async () => {
  execute = (_call, signal) =>
    new Promise((resolve) => signal.addEventListener('abort', () => resolve({ isError: true, result: {} })));
  const calling = callOnce();
  await eventually(() => executed.length === 1);
  await server.close();
  expect(await calling).toMatchObject({ isError: true });
});

test('the socket is for owner and group, and one that was left behind is replaced', async () => {
  expect((await stat(path)).mode & 0o777).toBe(0o660);
  const left = join(await temporary('socket'), 'tools.sock');
  await writeFile(left, 'stale');
  const again = await listenForCalls({
    socketPath: left,
    offered: [],
    execute,
    runServer: () => Promise.resolve(),
    clock,
    log: createRunnerLog('tools', clock, () => undefined),
  });
  expect((await stat(left)).isSocket()).toBe(true);
  await again.close();
});

async function eventually(condition: () => boolean): Promise<void> {
  while (!condition()) await new Promise((resolve) => setImmediate(resolve));
}
