/** The gateway client against gateways on loopback. A wait is over as soon as it is logged, on a clock that moves by it. */
import { FakeClock } from '../../test/builders/fake-clock.js';
import { startFakeGateway } from '../../test/builders/fake-gateway.js';
import type { FakeGateway, FakeGatewayOptions } from '../../test/builders/fake-gateway.js';
import { GatewayClient } from './gateway-client.js';
import type { GatewayRequest } from './gateway-client.js';
import { createRunnerLog } from './log.js';

const open: { close(): unknown }[] = [];
afterEach(async () => {
  for (const one of open.splice(0)) await one.close();
});

async function gateway(options: FakeGatewayOptions = {}): Promise<FakeGateway> {
  const started = await startFakeGateway(options);
  open.push(started);
  return started;
}

/** An address where nobody listens. */
async function deadAddress(): Promise<string> {
  const gone = await startFakeGateway();
  await gone.close();
  return gone.address;
}

function client(url: string, tokens: string[] = ['token']) {
  const clock = new FakeClock();
  const delays: number[] = [];
  const log = createRunnerLog('runner', clock, (line) => {
    const { delayMs } = JSON.parse(line) as { delayMs: number };
    delays.push(delayMs);
    // The wait begins right after it is logged.
    setImmediate(() => void clock.advance(delayMs));
  });
  const made = new GatewayClient({
    url: new URL(url),
    serverName: 'boxwright-gateway',
    ca: '',
    readToken: () => Promise.resolve(`${tokens.length > 1 ? tokens.shift() : tokens[0]}\n`),
    clock,
    random: () => 0.5,
    log,
  });
  open.push(made);
  const send = (changes: Partial<GatewayRequest> = {}) =>
    made.send({
      path: '/internal/v1/runs/bw-b/helper-1/events',
      body: (epoch) => JSON.stringify({ epoch, events: [] }),
      signal: new AbortController().signal,
      retryOn: [],
      attemptMs: 600_000,
      giveUpAt: clock.monotonic() + 300_000,
      ...changes,
    });
  return { made, send, delays, clock };
}

test('an answer is given as it is, also a refusal', async () => {
  const one = await gateway({ refuse: () => ({ status: 410, body: { error: 'over' } }) });
  expect(await client(one.url).send()).toMatchObject({ status: 410, body: '{"error":"over"}' });
});

test('the token is read again for every request', async () => {
  const one = await gateway({ refuse: (_call, count) => (count === 1 ? { status: 503 } : undefined) });
  const { send } = client(one.url, ['first', 'second', 'third']);
  await send();
  await send();
  expect(one.calls.map((call) => call.token)).toEqual(['first', 'second', 'third']);
});

test.each([429, 503])('%i is tried again, with growing waits', async (status) => {
  const one = await gateway({ refuse: (_call, count) => (count <= 7 ? { status } : undefined) });
  const { send, delays } = client(one.url);
  expect((await send()).status).toBe(200);
  expect(delays).toEqual([1000, 1500, 3000, 6000, 12_000, 22_500, 22_500]);
});

test('Retry-After is respected up to 30 s', async () => {
  const answers = [
    { status: 503, retryAfter: '7' },
    { status: 429, retryAfter: '3600' },
  ];
  const one = await gateway({ refuse: (_call, count) => answers[count - 1] });
  const { send, delays } = client(one.url);
  await send();
  expect(delays).toEqual([7000, 30_000]);
});

test('other statuses are tried again where the call says so', async () => {
  const one = await gateway({ refuse: (_call, count) => (count === 1 ? { status: 401 } : undefined) });
  expect((await client(one.url).send({ retryOn: [401] })).status).toBe(200);
});

test('a connection that breaks is tried again', async () => {
  const one = await gateway({ refuse: (_call, count) => (count <= 2 ? 'cut' : undefined) });
  const { send, delays } = client(one.url);
  expect((await send()).status).toBe(200);
  expect(delays).toHaveLength(2);
});

test('gives up at its time, and says what was last', async () => {
  const one = await gateway({ refuse: () => ({ status: 503 }) });
  const { send, clock } = client(one.url);
  await expect(send({ giveUpAt: 10_000 })).rejects.toThrow('No gateway served the request (last: HTTP 503).');
  expect(clock.monotonic()).toBeLessThan(10_000);
});

test('calls that wait for slow MCP servers hold up no report', async () => {
  const one = await gateway({ refuse: (_call, count) => (count <= 24 ? 'hang' : undefined) });
  const { send } = client(one.url);
  const ended = new AbortController();
  const slow = Array.from({ length: 24 }, () => send({ signal: ended.signal }).catch(() => undefined));
  while (one.calls.length < 24) await new Promise((resolve) => setImmediate(resolve));
  expect((await send()).status).toBe(200);
  ended.abort();
  await Promise.all(slow);
});

test('an attempt without an answer ends at its bound', async () => {
  const one = await gateway({ refuse: () => 'hang' });
  const { send, clock } = client(one.url);
  const sending = send({ attemptMs: 15_000, giveUpAt: 15_000 });
  await eventually(() => one.calls.length === 1);
  await Promise.all([clock.advance(15_000), expect(sending).rejects.toThrow('(last: timeout)')]);
});

test('an abort ends a wait and a request at once, with its reason', async () => {
  const one = await gateway({ refuse: () => 'hang' });
  const abort = new AbortController();
  const sending = client(one.url).send({ signal: abort.signal });
  await eventually(() => one.calls.length === 1);
  abort.abort(new Error('cancelled'));
  await expect(sending).rejects.toThrow('cancelled');
});

describe('the owner', () => {
  test('is asked first, with its fencing token', async () => {
    const [service, pod] = [await gateway(), await gateway()];
    const { made, send } = client(service.url);
    made.ownedBy(pod.address, 4);
    await send();
    expect(service.calls).toEqual([]);
    expect(pod.calls[0]?.body).toEqual({ epoch: 4, events: [] });
  });

  test('that cannot be reached is left for the Service', async () => {
    const service = await gateway();
    const { made, send, delays } = client(service.url);
    made.ownedBy(await deadAddress(), 1);
    expect((await send()).status).toBe(200);
    expect(delays).toEqual([1000]);
    // The pod behind the Service took the run over: the old address is not tried again.
    await send();
    expect(delays).toEqual([1000]);
    expect(service.calls).toHaveLength(2);
  });

  test('and the Service are asked in turn while neither serves', async () => {
    const service = await gateway({ refuse: (_call, count) => (count <= 2 ? { status: 503 } : undefined) });
    const pod = await gateway({ refuse: () => ({ status: 503 }) });
    const { made, send } = client(service.url);
    made.ownedBy(pod.address, 1);
    await send();
    expect([pod.calls.length, service.calls.length]).toEqual([3, 3]);
  });

  test('moves with 421, at once and with the new fencing token', async () => {
    const next = await gateway();
    const body = { error: 'elsewhere', gatewayAddress: next.address, epoch: 7 };
    const old = await gateway({ refuse: () => ({ status: 421, body }) });
    const { made, send, delays } = client(old.url);
    made.ownedBy(old.address, 6);
    await send();
    await send();
    expect(delays).toEqual([]);
    expect(old.calls).toHaveLength(1);
    expect(next.calls.map((call) => call.body)).toEqual([
      { epoch: 7, events: [] },
      { epoch: 7, events: [] },
    ]);
  });

  test('two pods that name each other do not make a storm', async () => {
    const pods: FakeGateway[] = [];
    const refuse = (other: number) => (_call: unknown, count: number) =>
      count > 6
        ? undefined
        : { status: 421, body: { error: 'elsewhere', gatewayAddress: pods[other]?.address, epoch: 1 } };
    pods.push(await gateway({ refuse: refuse(1) }), await gateway({ refuse: refuse(0) }));
    const { send, delays } = client(pods[0]?.url ?? '');
    expect((await send()).status).toBe(200);
    expect(delays.length).toBeGreaterThanOrEqual(2);
  });

  test('a 421 without an address waits like any failure', async () => {
    const one = await gateway({ refuse: (_call, count) => (count === 1 ? { status: 421 } : undefined) });
    const { send, delays } = client(one.url);
    await send();
    expect(delays).toEqual([1000]);
  });
});

async function eventually(condition: () => boolean): Promise<void> {
  while (!condition()) await new Promise((resolve) => setImmediate(resolve));
}

describe('a request that must not be repeated', () => {
  test('is given up when its connection broke, since it may have been served', async () => {
    const one = await gateway({ refuse: () => 'cut' });
    await expect(client(one.url).send({ once: true })).rejects.toThrow(
      /^The connection to the gateway broke \(.+\); the request may have been served\.$/,
    );
    expect(one.calls).toHaveLength(1);
  });

  test('is sent again while nobody took it: no connection, or a gateway that says so', async () => {
    const one = await gateway({ refuse: (_call, count) => (count === 1 ? { status: 503 } : undefined) });
    const { made, send } = client(one.url);
    made.ownedBy(await deadAddress(), 1);
    expect((await send({ once: true })).status).toBe(200);
    expect(one.calls).toHaveLength(2);
  });
});
