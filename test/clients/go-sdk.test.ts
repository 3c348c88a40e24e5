/** The official Go SDK, by the small program in test/clients/go. */
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { testClient } from './support/client-contract.js';
import type { ClientSession } from './support/client-contract.js';
import { WRONG_KEY, startLiveApi } from './support/live-api.js';
import type { LiveApi } from './support/live-api.js';
import { startLoopbackProxy } from './support/loopback-proxy.js';
import { runProcess } from './support/run-process.js';

const SOURCE = fileURLToPath(new URL('go/', import.meta.url));

let api: LiveApi;
let folder: string;
let program: string;
beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), 'boxwright-go-sdk-'));
  program = join(folder, 'session');
  // Modules and compiled packages come from and go to the caches of this machine.
  const home = process.env['HOME'] ?? '';
  const { code, stderr } = await runProcess('go', ['build', '-buildvcs=false', '-o', program, '.'], {
    cwd: SOURCE,
    env: { HOME: home },
    // A new machine downloads and compiles everything first.
    boundMs: 500_000,
  });
  if (code !== 0) throw new Error(`go build failed: ${stderr}`);
  api = await startLiveApi();
}, 600_000);
afterAll(async () => {
  await api.stop();
  await rm(folder, { recursive: true });
});

let requests: string[] = [];

testClient(
  () => api,
  async ({ url, key }, calls) => {
    const proxy = await startLoopbackProxy(url);
    requests = proxy.requests;
    const { code, stdout, stderr } = await runProcess(program, [proxy.url], {
      env: { API_KEY: key },
      input: JSON.stringify(calls),
    });
    proxy.close();
    if (code !== 0) throw new Error(`the session ended with ${code}: ${stderr}`);
    return JSON.parse(stdout) as ClientSession;
  },
);

test('the stream was tried once', () => {
  expect(requests.filter((line) => line !== 'POST /api/mcp/account')).toEqual(['GET /api/mcp/account']);
});

test('a wrong key is shown as such', async () => {
  const { code, stderr } = await runProcess(program, [api.url], { env: { API_KEY: WRONG_KEY }, input: '[]' });
  expect(stderr).toContain('Unauthorized');
  expect(code).toBe(1);
});
