import { Readable } from 'node:stream';
import { FakeClock } from '../../../test/builders/fake-clock.js';
import { BodyBudget } from '../../net/body-budget.js';
import { turnsDuring } from '../../../test/builders/turns.js';
import type { WebRequest, WebResponse } from '../../net/web-client.js';
import type { CallResult } from '../metrics.js';
import { readMessage } from './message.js';
import { redactor } from './redact.js';
import { McpProxy } from './proxy.js';

function response(body: Readable, headers: Record<string, string>, status = 200): WebResponse {
  return { status, header: (name) => headers[name], body };
}

/** A stream that gives these pieces and then nothing, until it is cut. */
function open(pieces: readonly string[]): Readable {
  const stream = new Readable({ read: () => undefined });
  for (const piece of pieces) stream.push(piece);
  return stream;
}

const MIB = 1024 * 1024;

function setUp(answer: (request: WebRequest) => Promise<WebResponse>, bodies = new BodyBudget(16 * MIB)) {
  const clock = new FakeClock();
  const proxy = new McpProxy({ clock, web: { request: answer }, bodies });
  const written: string[] = [];
  const started: unknown[] = [];
  const result = { value: 'refused' as CallResult };
  const gone = new AbortController();
  const exchange = proxy.exchange({
    target: {
      server: 'fake',
      box: 'lab',
      url: new URL('https://mcp.example.com/'),
      headers: { authorization: 'Bearer secret-of-the-agent' },
      trusted: undefined,
      redact: redactor(['secret-of-the-agent']),
    },
    message: readMessage({ jsonrpc: '2.0', id: 4, method: 'tools/list' }),
    headers: { 'mcp-session-id': 's' },
    signal: gone.signal,
    sink: {
      start: (...args) => void started.push(args),
      write: async (piece) => void written.push(String(piece)),
    },
    result,
  });
  // Looked at later; a rejection before that is no unhandled one.
  exchange.catch(() => undefined);
  return { clock, exchange, written, started, result, gone };
}

const hang = ({ signal }: WebRequest) =>
  new Promise<WebResponse>((_resolve, reject) => {
    signal.addEventListener('abort', () => reject(new Error('aborted')), { once: true });
  });

const SSE = { 'content-type': 'text/event-stream; charset=utf-8' };
const PROGRESS = 'data: {"jsonrpc":"2.0","method":"notifications/progress"}\n\n';

test('a server that does not answer is given up after 90 seconds', async () => {
  const { clock, exchange, result } = setUp(hang);
  await clock.advance(89_999);
  expect(result.value).toBe('aborted');
  await clock.advance(1);
  await expect(exchange).rejects.toMatchObject({
    status: 502,
    message: 'MCP server fake did not finish its answer within 90 seconds',
  });
  expect([result.value, clock.pending]).toEqual(['failed', 0]);
});

test('an event stream without an end is cut after 90 seconds, and the call is told why', async () => {
  const body = open([PROGRESS]);
  const { clock, exchange, written } = setUp(async ({ signal }) => {
    signal.addEventListener('abort', () => body.destroy(new Error('aborted')), { once: true });
    return response(body, SSE);
  });
  await clock.advance(90_000);
  await exchange;
  expect(written).toEqual([
    'event: message\ndata: {"jsonrpc":"2.0","method":"notifications/progress"}\n\n',
    'event: message\ndata: {"jsonrpc":"2.0","id":4,"error":{"code":-32000,"message":"MCP server fake did not finish its answer within 90 seconds."}}\n\n',
  ]);
  expect(body.destroyed).toBe(true);
});

test('an event stream ends with the answer, whatever the server keeps open, and shows no credential', async () => {
  const body = open([
    PROGRESS,
    'data: {"jsonrpc":"2.0",\ndata: "id":4,"result":{"saw":"Bearer secret-of-\\u0074he-agent"}}\r\n\r\n',
  ]);
  const { exchange, written, started, result } = setUp(async () => response(body, { ...SSE, 'mcp-session-id': 's-9' }));
  await exchange;
  expect(started).toEqual([[200, 'text/event-stream', { 'mcp-session-id': 's-9' }]]);
  expect(written[1]).toBe('event: message\ndata: {"jsonrpc":"2.0","id":4,"result":{"saw":"Bearer [credential]"}}\n\n');
  expect([written.length, result.value, body.destroyed]).toEqual([2, 'answered', true]);
});

test('a stream that ends before the answer says so', async () => {
  const { exchange, written } = setUp(async () => response(Readable.from([Buffer.from(PROGRESS)]), SSE));
  await exchange;
  expect(written.at(-1)).toContain('MCP server fake ended its answer before the result.');
});

test.each([
  ['Application/JSON ; Charset=UTF-8', '{"jsonrpc":"2.0","id":4,"result":{}}'],
  ['Text/Event-Stream', 'data: {"jsonrpc":"2.0","id":4,"result":{}}\n\n'],
])('media types are compared without case and parameters: %s', async (type, text) => {
  const { exchange, written } = setUp(async () =>
    response(Readable.from([Buffer.from(text)]), { 'content-type': type }),
  );
  await exchange;
  expect(written.join('')).toContain('{"jsonrpc":"2.0","id":4,"result":{}}');
});

test('an answer that nests too deep is none', async () => {
  const body = Readable.from([Buffer.from('['.repeat(129) + ']'.repeat(129))]);
  const { exchange } = setUp(async () => response(body, { 'content-type': 'application/json' }));
  await expect(exchange).rejects.toThrow('MCP server fake answered something that is not JSON');
});

test('a runner that goes away takes the call with it', async () => {
  const { exchange, gone, result, clock } = setUp(hang);
  gone.abort();
  await expect(exchange).rejects.toMatchObject({ status: 410 });
  expect([result.value, clock.pending]).toEqual(['aborted', 0]);
});

test('the error of a server goes on as it is, but for the credential', async () => {
  const body = Readable.from([
    Buffer.from('{"jsonrpc":"2.0","id":4,"error":{"code":-32022,"message":"secret-of-the-agent"}}'),
  ]);
  const { exchange } = setUp(async () => response(body, { 'content-type': 'application/json' }, 400));
  await expect(exchange).rejects.toMatchObject({
    status: 400,
    fields: { jsonrpc: '2.0', id: 4, error: { code: -32022, message: '[credential]' } },
  });
});

test.each([
  ['an answer', 'application/json', '"'],
  ['an event', 'text/event-stream', 'data: '],
])('%s that does not end holds no more than the budget of all, and the slowest goes', async (_what, type, start) => {
  const bodies = new BodyBudget(4 * MIB);
  const streams = Array.from({ length: 12 }, () => open([start]));
  const answers = streams.map((body) => setUp(() => Promise.resolve(response(body, { 'content-type': type })), bodies));
  const step = () => new Promise((resolve) => setImmediate(resolve));
  for (let round = 0; round < 16; round++) {
    for (const stream of streams) if (!stream.destroyed) stream.push('a'.repeat(64 * 1024));
    await step();
    expect(bodies.bytes).toBeLessThanOrEqual(4 * MIB);
  }
  const cut = streams.filter(({ destroyed }) => destroyed).length;
  expect(cut).toBeGreaterThanOrEqual(8);
  for (const stream of streams) stream.destroy();
  await Promise.allSettled(answers.map(({ exchange }) => exchange));
  expect(bodies.bytes).toBe(0);
});

test('between the steps of a large answer others are served', async () => {
  const turnsFor = async (text: string) => {
    const json = JSON.stringify({ jsonrpc: '2.0', id: 4, result: text });
    return turnsDuring(async () => {
      const body = Readable.from([Buffer.from(json)]);
      const { exchange, written } = setUp(() =>
        Promise.resolve(response(body, { 'content-type': 'application/json' })),
      );
      await exchange;
      expect(written).toEqual([json]);
    });
  };
  const small = await turnsFor('x');
  expect(await turnsFor('x'.repeat(MIB))).toBeGreaterThanOrEqual(small + 2);
});
