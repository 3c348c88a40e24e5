import { request as httpRequest } from 'node:http';
import { Counter, Registry } from 'prom-client';
import { FakeClock } from '../../test/builders/fake-clock.js';
import { createLogger } from './logger.js';
import { startInternalServer } from './probes.js';
import type { InternalServer, InternalServerOptions } from './probes.js';

const open: InternalServer[] = [];
afterEach(async () => {
  await Promise.all(open.splice(0).map((server) => server.stop()));
});

async function serve(change: Partial<InternalServerOptions> = {}) {
  const lines: string[] = [];
  const clock = new FakeClock();
  const server = await startInternalServer({
    port: 0,
    host: '127.0.0.1',
    registry: new Registry(),
    live: () => [],
    ready: () => [],
    logger: createLogger('test', 'info', { write: (line) => void lines.push(line) }),
    clock,
    ...change,
  });
  open.push(server);
  return { server, lines, clock };
}

interface Answer {
  status: number | undefined;
  type: string | undefined;
  text: string;
}

function call(port: number, method: string, path: string, body?: string | Buffer): Promise<Answer> {
  return new Promise((resolve, reject) => {
    const request = httpRequest({ port, host: '127.0.0.1', method, path, agent: false }, (response) => {
      let text = '';
      response.setEncoding('utf8').on('data', (part: string) => (text += part));
      response.on('end', () => resolve({ status: response.statusCode, type: response.headers['content-type'], text }));
    });
    request.on('error', reject).end(body);
  });
}

describe('probes', () => {
  it('are green without problems', async () => {
    const { server } = await serve();
    const ok = { status: 200, type: 'text/plain; charset=utf-8', text: 'ok\n' };
    expect(await call(server.port, 'GET', '/livez')).toEqual(ok);
    expect(await call(server.port, 'GET', '/readyz?verbose')).toEqual(ok);
  });

  it('are red with every reason, each for itself', async () => {
    const problems = [
      { check: 'informer agentruns', message: 'silent for 70 s' },
      { check: 'keyring', message: 'not read yet' },
    ];
    const { server } = await serve({ ready: () => problems });
    expect(await call(server.port, 'GET', '/readyz')).toEqual({
      status: 503,
      type: 'text/plain; charset=utf-8',
      text: 'informer agentruns: silent for 70 s\nkeyring: not read yet\n',
    });
    expect(await call(server.port, 'GET', '/livez')).toMatchObject({ status: 200 });
  });

  it('show what is true when they are asked', async () => {
    let problems = [{ check: 'a', message: 'b' }];
    const { server } = await serve({ live: () => problems });
    expect(await call(server.port, 'GET', '/livez')).toMatchObject({ status: 503, text: 'a: b\n' });
    problems = [];
    expect(await call(server.port, 'GET', '/livez')).toMatchObject({ status: 200 });
  });

  it('stand beside the metrics of the registry', async () => {
    const registry = new Registry();
    new Counter({ name: 'boxwright_test_total', help: 'x', registers: [registry] }).inc(3);
    const { server } = await serve({ registry });
    const answer = await call(server.port, 'GET', '/metrics');
    expect(answer).toMatchObject({ status: 200, type: 'text/plain; version=0.0.4; charset=utf-8' });
    expect(answer.text).toContain('boxwright_test_total 3');
  });

  it('are all that there is', async () => {
    const { server } = await serve();
    expect(await call(server.port, 'GET', '/')).toMatchObject({ status: 404 });
    expect(await call(server.port, 'GET', '/constructor')).toMatchObject({ status: 404 });
    expect(await call(server.port, 'POST', '/readyz')).toMatchObject({ status: 405 });
  });
});

describe('a route', () => {
  it('gets the body of a POST and answers JSON', async () => {
    const { server } = await serve({
      routes: { '/barrier': ({ body }) => Promise.resolve({ status: 200, body: { seen: body.toString() } }) },
    });
    expect(await call(server.port, 'POST', '/barrier', 'hello')).toEqual({
      status: 200,
      type: 'application/json',
      text: '{"seen":"hello"}',
    });
    expect(await call(server.port, 'GET', '/barrier')).toMatchObject({ status: 405 });
  });

  it('never sees a body above 64 KiB', async () => {
    let called = 0;
    const { server } = await serve({ routes: { '/barrier': () => Promise.resolve({ status: 200 + called++ }) } });
    expect(await call(server.port, 'POST', '/barrier', Buffer.alloc(65_536))).toMatchObject({ status: 200 });
    expect(await call(server.port, 'POST', '/barrier', Buffer.alloc(65_537))).toMatchObject({ status: 413 });
    expect(called).toBe(1);
  });

  it('that fails answers 500 without the reason, which is logged', async () => {
    const { server, lines } = await serve({ routes: { '/barrier': () => Promise.reject(new Error('the cause')) } });
    expect(await call(server.port, 'POST', '/barrier', '')).toMatchObject({ status: 500, text: 'internal error\n' });
    expect(lines).toHaveLength(1);
    expect(lines[0]).toContain('the cause');
  });
});

describe('stop', () => {
  it('tells running routes, waits for them, and then takes no calls', async () => {
    let entered: () => void = () => undefined;
    const inRoute = new Promise<void>((resolve) => (entered = resolve));
    const { server, clock } = await serve({
      routes: {
        '/barrier': ({ signal }) =>
          new Promise((resolve) => {
            signal.addEventListener('abort', () => resolve({ status: 503 }));
            entered();
          }),
      },
    });
    const answer = call(server.port, 'POST', '/barrier', '');
    await inRoute;
    await server.stop();
    expect(await answer).toMatchObject({ status: 503 });
    expect(clock.pending).toBe(0);
    await expect(call(server.port, 'GET', '/livez')).rejects.toThrow('ECONNREFUSED');
  });

  it('cuts a route that does not end within the grace', async () => {
    let entered: () => void = () => undefined;
    const inRoute = new Promise<void>((resolve) => (entered = resolve));
    const { server, clock } = await serve({
      routes: { '/barrier': () => (entered(), new Promise(() => undefined)) },
    });
    const answer = call(server.port, 'POST', '/barrier', '').catch((error: unknown) => String(error));
    await inRoute;
    const stopped = server.stop(1_000);
    await clock.advance(1_000);
    await stopped;
    expect(await answer).toContain('socket hang up');
  });
});

it('a taken port is an error at start', async () => {
  const { server } = await serve();
  await expect(serve({ port: server.port })).rejects.toThrow('EADDRINUSE');
});
