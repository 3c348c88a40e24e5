import { createServer, type Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import type { Clock } from '../runtime/clock.js';
import { smokeTest } from './smoke-test.js';

let server: Server;
let url: string;
let answers: Record<string, number>;

beforeAll(async () => {
  server = createServer((request, response) => response.writeHead(answers[request.url ?? ''] ?? 500).end());
  await new Promise<void>((resolve) => void server.listen(0, '127.0.0.1', resolve));
  url = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
});
afterAll(() => void server.close());

const GOOD = { '/api/mcp/account': 401, '/api/t/none/none/none': 404 };

/** A clock on which each wait ends at once and has taken half a minute. */
function quickClock(): Clock {
  let now = 0;
  const after = (_ms: number, callback: () => void) => {
    now += 30_000;
    const handle = setImmediate(callback);
    return () => clearImmediate(handle);
  };
  return { now: () => now, monotonic: () => now, after };
}

test('an installation that asks for a key and knows no strange URL is good', async () => {
  answers = GOOD;
  expect(await smokeTest(url, quickClock())).toEqual([]);
});

test.each([
  ['/api/mcp/account', 200, 'the MCP endpoint asks for a key: POST /api/mcp/account answered 200, not 401'],
  [
    '/api/t/none/none/none',
    502,
    'an unknown trigger URL is not there: POST /api/t/none/none/none answered 502, not 404',
  ],
])('%s that answers %i fails after a minute', async (path, status, failure) => {
  answers = { ...GOOD, [path]: status };
  expect(await smokeTest(url, quickClock())).toEqual([failure]);
});
