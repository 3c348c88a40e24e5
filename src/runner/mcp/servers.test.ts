/** A run's MCP servers behind a gateway that a test plays: bounds of time, names, definitions, results. */
import { FakeClock } from '../../../test/builders/fake-clock.js';
import { createRunnerLog } from '../log.js';
import { connectServers } from './servers.js';

interface Message {
  id?: number;
  method: string;
  params?: { name?: string };
}

type Answer = object | 'hang' | Response;

function hang(signal: AbortSignal | null | undefined): Promise<Response> {
  return new Promise((_resolve, reject) => {
    signal?.addEventListener('abort', () => reject(signal.reason as Error), { once: true });
  });
}

/** A server that speaks 2025-06-18; `answer` gives results. */
function setUp(answer: (message: Message) => Answer | undefined) {
  const clock = new FakeClock();
  const fetch: typeof globalThis.fetch = async (_url, init) => {
    if (init?.method !== 'POST') return new Response(null, { status: 405 });
    const message = JSON.parse(init.body as string) as Message;
    const given = answer(message);
    if (given === 'hang') return hang(init.signal);
    if (given instanceof Response) return given;
    if (message.id === undefined) return new Response(null, { status: 202 });
    const known = message.method === 'initialize' ? INITIALIZED : given;
    const reply = known === undefined ? { error: { code: -32601, message: 'unknown' } } : { result: known };
    return Response.json({ jsonrpc: '2.0', id: message.id, ...reply });
  };
  const deps = {
    fetch,
    gatewayUrl: 'https://gateway/',
    toolsSocket: '/nowhere',
    run: 'helper-1',
    clock,
    log: createRunnerLog('runner', clock, () => undefined),
  };
  const signal = new AbortController();
  const connect = (...names: string[]) =>
    connectServers(
      names.map((name) => ({ name, transport: 'http', path: `/gateway/mcp/${name}` })),
      deps,
      signal.signal,
    );
  return { clock, connect, signal };
}

const INITIALIZED = {
  protocolVersion: '2025-06-18',
  capabilities: { tools: {} },
  serverInfo: { name: 'fake', version: '1' },
};
const tools = (...list: object[]) => ({ tools: list.map((tool) => ({ inputSchema: { type: 'object' }, ...tool })) });

/** Moves the clock until the promise is settled: the client needs turns of the event loop in between. */
async function settled<T>(work: Promise<T>, clock: FakeClock, stepMs: number): Promise<T> {
  const state = { isSettled: false };
  const settle = () => {
    state.isSettled = true;
  };
  work.then(settle, settle);
  for (let turn = 0; turn < 1000 && !state.isSettled; turn++) await clock.advance(turn < 50 ? 0 : stepMs);
  return work;
}

test('a server that does not answer is left out after 30 seconds, and the others are there', async () => {
  const { clock, connect } = setUp(({ method }) => (method === 'tools/list' ? tools({ name: 'a' }) : undefined));
  const slow = setUp(() => 'hang');
  const { tools: found } = await settled(connect('fast'), clock, 1000);
  expect(found.map(({ name, server }) => [name, server])).toEqual([['fast__a', 'fast']]);
  const left = await settled(slow.connect('slow'), slow.clock, 1000);
  expect(left).toMatchObject({
    tools: [],
    warnings: ['MCP server slow is left out: MCP server slow gave no answer within 30 seconds.'],
  });
  expect(slow.clock.monotonic()).toBe(30_000);
});

test('a call without an answer is an error after 60 seconds', async () => {
  const { clock, connect, signal } = setUp(({ method }) =>
    method === 'tools/call' ? 'hang' : method === 'tools/list' ? tools({ name: 'a' }) : undefined,
  );
  const {
    tools: [tool],
  } = await settled(connect('fake'), clock, 1000);
  const result = await settled(tool!.execute({}, signal.signal), clock, 1000);
  expect(result).toEqual({ isError: true, result: { error: 'MCP server fake gave no answer within 60 seconds.' } });
  expect(clock.monotonic()).toBe(60_000);
});

test('a run that stops ends its calls with its own reason', async () => {
  const { clock, connect, signal } = setUp(({ method }) =>
    method === 'tools/call' ? 'hang' : method === 'tools/list' ? tools({ name: 'a' }) : undefined,
  );
  const {
    tools: [tool],
  } = await settled(connect('fake'), clock, 1000);
  const call = tool!.execute({}, signal.signal);
  signal.abort(new Error('cancelled'));
  await expect(call).rejects.toThrow('cancelled');
});

test('what no model takes is left out or put right', async () => {
  const { clock, connect } = setUp(({ method }) =>
    method === 'tools/list'
      ? tools(
          { name: 'plain', description: 'd'.repeat(10_000) },
          {
            name: 'any',
            inputSchema: { type: 'object', anyOf: [{}], $schema: 'x', properties: { a: {} }, required: ['a'] },
          },
          { name: 'large', inputSchema: { type: 'object', properties: { a: { description: 'x'.repeat(40_000) } } } },
          { name: 'plain', description: 'a second one' },
        )
      : undefined,
  );
  const connected = await settled(connect('fake'), clock, 1000);
  expect(connected.tools.map(({ name, schema, description }) => [name, schema, description.length])).toEqual([
    ['fake__plain', { type: 'object', properties: {} }, 4096],
    ['fake__any', { type: 'object', properties: { a: {} }, required: ['a'] }, 'Tool any of MCP server fake.'.length],
  ]);
  expect(connected.warnings).toEqual(['2 tools of MCP server fake are left out: no model takes their definitions.']);
});

test('a run has at most 1000 tools of MCP servers', async () => {
  const { clock, connect } = setUp(({ method }) =>
    method === 'tools/list' ? tools(...Array.from({ length: 600 }, (_, index) => ({ name: `t${index}` }))) : undefined,
  );
  const connected = await settled(connect('one', 'two'), clock, 1000);
  expect([connected.tools.length, connected.warnings]).toEqual([
    1000,
    ['200 tools of MCP server two are left out: a run has at most 1000 tools of MCP servers.'],
  ]);
});

test('the words of the gateway are the reason', async () => {
  const refusal = { error: { type: 'McpRefused', message: 'MCP server fake is not asked: there is no Secret' } };
  const { clock, connect } = setUp(() => Response.json(refusal, { status: 400 }));
  expect((await settled(connect('fake'), clock, 1000)).warnings).toEqual([
    'MCP server fake is left out: MCP server fake is not asked: there is no Secret',
  ]);
});
