/** What the benchmark says of what it measured; the measuring itself belongs to no gate. */
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { phaseOf, undiciClient } from '../bench/load.js';
import { compare, median, table } from '../bench/pairs.js';

const phase = (perSecond: number) => ({ perSecond, p50: 1, p99: 2 });

test('a phase is a rate and two times', () => {
  const millis = Array.from({ length: 200 }, (_, index) => index + 1);
  expect(phaseOf(2, millis)).toEqual({ perSecond: 100, p50: 101, p99: 199 });
});

test('the median is the value in the middle', () => {
  expect(median([5, 1, 3])).toBe(3);
});

test('the ratio is that of one turn, to the best of what it is compared with', async () => {
  const order: string[] = [];
  const rates = { ours: [90, 80, 100, 60, 70], a: [100, 100, 50, 100, 100], b: [50, 160, 80, 100, 100] };
  const next = (name: keyof typeof rates) => () => {
    order.push(name);
    return Promise.resolve(phase(rates[name].shift() ?? 0));
  };
  const said: string[] = [];
  const load = { requests: 10, atOnce: 16 };
  const limits = { a: next('a'), b: next('b') };
  const row = await compare({ what: 'webhook', pid: process.pid, ours: next('ours'), limits, ...load }, (line) =>
    said.push(line),
  );
  expect(order.slice(0, 6)).toEqual(['a', 'b', 'ours', 'a', 'b', 'ours']);
  expect(row).toMatchObject({
    what: 'webhook',
    atOnce: 16,
    ours: { perSecond: 80 },
    limits: { a: 100, b: 100 },
    ratio: { median: 0.7, min: 0.5, max: 1.25 },
  });
  expect(said).toEqual(['webhook, 16 at once: 80/s, ratio 0.7']);
  expect(table([{ ...row, cpuMs: 0.25 }])).toEqual([
    '         at once  a second  p50 ms  p99 ms  CPU ms  ratio (min-max)   compared with, a second',
    'webhook  16       80        1.0     2.0     0.25    0.70 (0.50-1.25)  a 100, b 100',
  ]);
});

describe('the client', () => {
  async function withServer(status: number, use: (url: string, bodies: string[]) => Promise<void>): Promise<number> {
    const bodies: string[] = [];
    let connections = 0;
    const server = createServer((request, response) => {
      const parts: Buffer[] = [];
      request.on('data', (part: Buffer) => parts.push(part));
      request.on('end', () => {
        bodies.push(Buffer.concat(parts).toString());
        response.writeHead(status).end('{}');
      });
    });
    server.on('connection', () => (connections += 1));
    await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
    try {
      await use(`http://127.0.0.1:${(server.address() as AddressInfo).port}/x?y=1`, bodies);
    } finally {
      server.closeAllConnections();
      await new Promise((resolve) => server.close(resolve));
    }
    return connections;
  }

  const request = { method: 'POST' as const, headers: {}, body: '{"name":"{name}"}', status: 202 };

  test('sends each request once, each with a name of its own, over no more connections than requests at once', async () => {
    const connections = await withServer(202, async (url, bodies) => {
      await undiciClient.send({ ...request, url }, { requests: 50, atOnce: 4 });
      expect(new Set(bodies).size).toBe(50);
      expect(bodies.every((body) => /^\{"name":"[a-z0-9-]{1,63}"\}$/.test(body))).toBe(true);
    });
    expect(connections).toBeLessThanOrEqual(4);
  });

  test('fails when an answer is another one', async () => {
    await withServer(404, async (url) => {
      const sent = undiciClient.send({ ...request, url }, { requests: 5, atOnce: 1 });
      await expect(sent).rejects.toThrow('answered 404 instead of 202');
    });
  });
});
