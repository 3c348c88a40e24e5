/** The way to MCP servers in the tools container: real programs behind a real socket, then peers that lie. */
import { existsSync } from 'node:fs';
import { readFile, writeFile } from 'node:fs/promises';
import { createServer } from 'node:net';
import type { Server, Socket } from 'node:net';
import { join } from 'node:path';
import { temporaryDirectories } from '../../../test/builders/workspace.js';
import { encodeFrame, MAX_SERVER_FRAMES } from '../../protocol/tools-socket.js';
import { systemClock } from '../../runtime/clock.js';
import { createRunnerLog } from '../log.js';
import { createProgramRunner } from '../tools/mcp-program.js';
import { listenForCalls } from '../tools/server.js';
import type { ToolsServer } from '../tools/server.js';
import { StdioTransport } from './stdio-transport.js';
import type { McpMessage } from './transport.js';

const temporary = temporaryDirectories();
const open: { close(): Promise<unknown> }[] = [];
let directory: string;
let socketPath: string;
let tools: ToolsServer | undefined;

beforeEach(async () => {
  directory = await temporary('mcp');
  socketPath = join(directory, 'tools.sock');
});
afterEach(async () => {
  for (const thing of open.splice(0)) await thing.close();
  await tools?.close();
  tools = undefined;
});

async function startTools(): Promise<void> {
  const log = createRunnerLog('tools', systemClock, () => undefined);
  tools = await listenForCalls({
    socketPath,
    offered: [],
    execute: () => Promise.resolve({ isError: false, result: {} }),
    runServer: createProgramRunner({ workspace: directory, home: '/home/of-the-run', clock: systemClock, log }),
    clock: systemClock,
    log,
  });
}

interface Session {
  transport: StdioTransport;
  /** The next message. */
  next: () => Promise<McpMessage>;
  closed: Promise<void>;
}

function session(command: string, args: string[] = [], env: Record<string, string> = {}): Session {
  const server = { name: 'demo', command, args, env };
  const transport = new StdioTransport({ socketPath, clock: systemClock, run: 'ada-1', server });
  const arrived: McpMessage[] = [];
  const waiting: ((message: McpMessage) => void)[] = [];
  const onmessage = (message: McpMessage) => {
    const first = waiting.shift();
    if (first === undefined) arrived.push(message);
    else first(message);
  };
  const closed = Promise.withResolvers<void>();
  // The transport has no other way to tell.
  Object.assign(transport, { onmessage, onclose: () => closed.resolve() });
  open.push(transport);
  const next = () => {
    const message = arrived.shift();
    return message === undefined
      ? new Promise<McpMessage>((resolve) => waiting.push(resolve))
      : Promise.resolve(message);
  };
  return { transport, next, closed: closed.promise };
}

/** A server in a few lines: it answers every request with what it was asked, and knows some tricks. */
const SERVER = `
import { createInterface } from 'node:readline';
const say = (value) => process.stdout.write(JSON.stringify(value) + '\\n');
console.log('a greeting that is not JSON');
for await (const line of createInterface({ input: process.stdin })) {
  const { id, method, params } = JSON.parse(line);
  if (method === 'env') say({ jsonrpc: '2.0', id, result: { env: process.env, cwd: process.cwd(), pid: process.pid } });
  else if (method === 'die') { console.error('out of ideas'); process.exit(3); }
  else if (method === 'long') say({ jsonrpc: '2.0', id, result: { text: 'x'.repeat(params.size) } });
  else if (method === 'silent') continue;
  else say({ jsonrpc: '2.0', id, result: { method, params } });
}
`;

async function demo(env: Record<string, string> = {}): Promise<Session> {
  const script = join(directory, 'server.mjs');
  await writeFile(script, SERVER);
  await startTools();
  const made = session(process.execPath, [script], env);
  await made.transport.start();
  return made;
}
const ask = (id: number, method: string, params: unknown = {}) => ({ jsonrpc: '2.0', id, method, params });

test('messages go both ways, in order, and what is not a message is passed over', async () => {
  const { transport, next } = await demo();
  await Promise.all([1, 2, 3].map((id) => transport.send(ask(id, 'echo', { text: 'ä\n"' }))));
  for (const id of [1, 2, 3]) {
    expect(await next()).toEqual({ jsonrpc: '2.0', id, result: { method: 'echo', params: { text: 'ä\n"' } } });
  }
});

test('the program has a clean environment and what it was given, and works in the workspace', async () => {
  process.env['BOXWRIGHT_TEST_SECRET'] = 'sk-real';
  const { transport, next } = await demo({ TOKEN: 'given' });
  delete process.env['BOXWRIGHT_TEST_SECRET'];
  await transport.send(ask(1, 'env'));
  const { result } = (await next()) as { result: { env: Record<string, string>; cwd: string } };
  expect(Object.keys(result.env).sort()).toEqual(['HOME', 'LANG', 'PATH', 'TOKEN']);
  expect(result.env).toMatchObject({ TOKEN: 'given', HOME: '/home/of-the-run' });
  expect(result.cwd).toBe(directory);
});

test('closing ends the program', async () => {
  const { transport, next } = await demo();
  await transport.send(ask(1, 'env'));
  const { result } = (await next()) as { result: { pid: number } };
  await transport.close();
  await tools?.close();
  tools = undefined;
  expect(existsSync(`/proc/${result.pid}`)).toBe(false);
  await expect(transport.send(ask(2, 'echo'))).rejects.toThrow(
    'MCP server demo is not there: the connection was closed.',
  );
});

test('a program that ignores the end of its input and TERM is killed, with its children', async () => {
  await startTools();
  const script = `trap '' TERM; sh -c "trap '' TERM; echo \\$\\$ > child; exec sleep 60" & echo '{"ready":true}'; while :; do sleep 60; done`;
  const { transport, next } = session('/bin/sh', ['-c', script]);
  await transport.start();
  await next();
  const pid = await eventually(() => readFile(join(directory, 'child'), 'utf8').catch(() => ''));
  await transport.close();
  await tools?.close();
  tools = undefined;
  expect(await eventually(() => (existsSync(`/proc/${pid.trim()}`) ? '' : 'gone'))).toBe('gone');
});

test('a program that is not there says so', async () => {
  await startTools();
  const { transport, closed } = session('no-such-program');
  await expect(transport.start()).rejects.toThrow(
    'MCP server demo is not there: there is no such program in the image.',
  );
  await closed;
});

test('a request that is open when the program ends is answered with the reason and its last words', async () => {
  const { transport, next, closed } = await demo();
  await transport.send(ask(7, 'die'));
  expect(await next()).toEqual({
    jsonrpc: '2.0',
    id: 7,
    error: {
      code: -32603,
      message: 'MCP server demo is not there: it ended with exit code 3; its last words: out of ideas.',
    },
  });
  await closed;
  expect(await readFile(join(directory, '.runs/ada-1/mcp-demo.log'), 'utf8')).toBe('out of ideas\n');
});

test('a message of almost 1 MiB passes, a larger one ends the server', async () => {
  const { transport, next, closed } = await demo();
  await transport.send(ask(1, 'long', { size: 1_000_000 }));
  const { result } = (await next()) as { result: { text: string } };
  expect(result.text).toHaveLength(1_000_000);
  await transport.send(ask(2, 'long', { size: 2_000_000 }));
  expect(await next()).toMatchObject({ id: 2, error: { code: -32603 } });
  await closed;
});

test('two servers and calls do not mix', async () => {
  const one = await demo({ WHO: 'one' });
  const two = session(process.execPath, [join(directory, 'server.mjs')], { WHO: 'two' });
  await two.transport.start();
  await Promise.all([one.transport.send(ask(1, 'env')), two.transport.send(ask(1, 'env'))]);
  expect([await one.next(), await two.next()]).toMatchObject([
    { result: { env: { WHO: 'one' } } },
    { result: { env: { WHO: 'two' } } },
  ]);
});

test('tools that end take their servers along', async () => {
  const { transport, next, closed } = await demo();
  await transport.send(ask(1, 'env'));
  const { result } = (await next()) as { result: { pid: number } };
  await tools?.close();
  tools = undefined;
  await closed;
  expect(existsSync(`/proc/${result.pid}`)).toBe(false);
});

describe('hostile peers', () => {
  let peer: Server;
  let sockets: Socket[];

  /** Code of the agent that has taken the place of the socket. */
  async function listen(behave: (socket: Socket) => void): Promise<void> {
    sockets = [];
    peer = createServer((socket) => {
      sockets.push(socket);
      socket.on('error', () => undefined);
      socket.once('data', () => behave(socket));
    });
    await new Promise<void>((resolve) => peer.listen(socketPath, resolve));
    open.push({
      close: () => {
        for (const socket of sockets) socket.destroy();
        return new Promise((resolve) => peer.close(resolve));
      },
    });
  }
  const rawFrame = (text: string) => {
    const body = Buffer.from(text);
    const head = Buffer.alloc(4);
    head.writeUInt32BE(body.length);
    return Buffer.concat([head, body]);
  };
  const broken = 'MCP server demo is not there: the tools container broke the protocol of the tools socket.';

  test.each([
    ['a frame that is too large', Buffer.from([0xff, 0, 0, 0])],
    ['JSON nested too deep', rawFrame(`{"type":"message","message":{"a":${'['.repeat(40)}${']'.repeat(40)}}}`)],
    ['no JSON', rawFrame('{')],
    ['another frame', rawFrame('{"type":"result","isError":false,"result":{}}')],
    ['a message that is no object', rawFrame('{"type":"message","message":[]}')],
  ])('%s ends the connection', async (_name, bytes) => {
    await listen((socket) => socket.write(bytes));
    const { transport, closed } = session('x');
    await expect(transport.start()).rejects.toThrow(broken);
    await closed;
  });

  test('endless frames end after as many as the protocol allows', async () => {
    const flood = Buffer.concat(Array<Buffer>(1000).fill(encodeFrame({ type: 'message', message: { method: 'x' } })));
    await listen((socket) => {
      const pour = () => {
        while (!socket.destroyed && socket.write(flood));
      };
      socket.on('drain', pour);
      socket.write(encodeFrame({ type: 'started' }));
      pour();
    });
    const { transport, closed } = session('x');
    let messages = 0;
    Object.assign(transport, { onmessage: () => (messages += 1) });
    await transport.start();
    await closed;
    expect(messages).toBeLessThan(MAX_SERVER_FRAMES);
    await expect(transport.send(ask(1, 'echo'))).rejects.toThrow(broken);
  });

  test('a client that throws on a message goes on', async () => {
    await listen((socket) => {
      socket.write(encodeFrame({ type: 'started' }));
      socket.write(encodeFrame({ type: 'message', message: { odd: 1 } }));
      socket.write(encodeFrame({ type: 'message', message: { jsonrpc: '2.0', id: 1, result: {} } }));
    });
    const { transport } = session('x');
    const errors: string[] = [];
    const answered = Promise.withResolvers<void>();
    const onmessage = (message: McpMessage) => {
      if ('odd' in message) throw new Error('odd');
      answered.resolve();
    };
    Object.assign(transport, { onmessage, onerror: (error: Error) => errors.push(error.message) });
    await transport.start();
    await answered.promise;
    expect(errors).toEqual(['odd']);
  });
});

async function eventually(look: () => Promise<string> | string): Promise<string> {
  for (;;) {
    const found = await look();
    if (found !== '') return found;
    await new Promise((resolve) => setTimeout(resolve, 20));
  }
}
