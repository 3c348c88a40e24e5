/** The conformance suite of the protocol. It has no option for headers, so the proxy adds the key. */
import { mkdtemp, readFile, readdir, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { startLiveApi } from './support/live-api.js';
import type { LiveApi } from './support/live-api.js';
import { startLoopbackProxy } from './support/loopback-proxy.js';
import { npmProgram, runProcess } from './support/run-process.js';

const BASELINE = fileURLToPath(new URL('conformance-baseline.yaml', import.meta.url));

let api: LiveApi;
beforeAll(async () => {
  api = await startLiveApi();
});
afterAll(() => api.stop());

/** `SUCCESS` or `FAILURE` of the check wire-schema-valid, by scenario. */
async function wireSchemaResults(folder: string): Promise<Record<string, string>> {
  const results: Record<string, string> = {};
  for (const scenario of await readdir(folder)) {
    const text = await readFile(join(folder, scenario, 'checks.json'), 'utf8');
    const check = (JSON.parse(text) as { id: string; status: string }[]).find(({ id }) => id === 'wire-schema-valid');
    if (check !== undefined) results[scenario.replace(/^server-(.+)-\d{4}-.*$/, '$1')] = check.status;
  }
  return results;
}

/** 2025-11-25 is what clients ask for today; the server answers it with 2025-06-18. */
test.each(['2025-06-18', '2025-11-25'])(
  'revision %s: fails what the baseline says and nothing else; every message obeys the schema',
  async (version) => {
    const proxy = await startLoopbackProxy(api.url, api.key);
    const folder = await mkdtemp(join(tmpdir(), 'boxwright-conformance-'));
    const options = ['--suite', 'active', '--spec-version', version, '--expected-failures', BASELINE, '-o', folder];
    const { code, stdout } = await runProcess(...npmProgram('conformance', 'server', '--url', proxy.url, ...options));
    proxy.close();
    const wire = await wireSchemaResults(folder);
    await rm(folder, { recursive: true });

    expect(stdout.slice(stdout.indexOf('=== SUMMARY'))).toContain('Baseline check passed');
    expect(code).toBe(0);
    expect(wire).toMatchObject({ 'server-initialize': 'SUCCESS', ping: 'SUCCESS', 'tools-list': 'SUCCESS' });
    expect(Object.entries(wire).filter(([, status]) => status !== 'SUCCESS')).toEqual([]);
  },
);
