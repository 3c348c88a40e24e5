/** A report from a real pod to a person: published by the agent, listed by get_run, downloaded by its URL. */
import { execFile } from 'node:child_process';
import { createHash } from 'node:crypto';
import { promisify } from 'node:util';
import { jest } from '@jest/globals';
import { facts, getObject, kubectlOk, eventually } from './support/install.js';
import { toolOk } from './support/mcp.js';
import { createRun, ended } from './support/runs.js';
import { createTenant } from './support/tenant.js';
import type { Tenant } from './support/tenant.js';

jest.setTimeout(900_000);

const run = promisify(execFile);

interface Listed {
  name: string;
  bytes: number;
  sha256: string;
  url: string;
}

describe('files', () => {
  let tenant: Tenant;

  beforeAll(async () => {
    tenant = await createTenant('e2e-files');
    await tenant.agent('worker');
  });

  afterAll(async () => {
    await tenant.remove();
  });

  test('an agent publishes a report, and a person downloads it with curl by the URL of get_run', async () => {
    const message = [
      '/shell mkdir -p out && head -c 700000 /dev/urandom > out/report.bin && sha256sum out/report.bin | cut -c1-64',
      '/tool publish_file {"path": "out/report.bin", "description": "All of it"}',
      // What could sign a URL, or write the file by itself, is not in the pod.
      '/shell env | grep -ci keyring; ls /var/run/secrets 2>/dev/null | wc -l',
      '/say Done.',
    ].join('\n');
    await createRun(tenant, 'worker', message, 'report');
    expect((await ended(tenant, 'report')).status).toMatchObject({ phase: 'done', output: 'Done.' });

    const query = { agentId: tenant.agentId('worker'), runId: 'report', includeToolCalls: true };
    const shown = await toolOk<{ files: Listed[]; toolCalls: { result: string }[] }>(tenant.apiKey, 'get_run', query);
    const [file] = shown.files;
    const outputs = shown.toolCalls.map(({ result }) => (JSON.parse(result) as { output?: string }).output);
    expect(file).toMatchObject({ name: 'report.bin', bytes: 700_000, sha256: outputs[0]?.trim() });
    expect(outputs[2]).toBe('0\n0\n');

    const url = new URL(file?.url ?? '');
    const address = `${facts().baseUrl}${url.pathname}`;
    const { stdout } = await run('curl', ['-sf', address], { encoding: 'buffer', maxBuffer: 2 * 1024 * 1024 });
    expect(createHash('sha256').update(stdout).digest('hex')).toBe(file?.sha256);
    const part = await run('curl', ['-sf', '-r', '699990-', address], { encoding: 'buffer' });
    expect(part.stdout).toEqual(stdout.subarray(-10));
    expect((await fetch(`${address}x`)).status).toBe(404);

    expect(await kubectlOk(['get', 'agentruns', '-n', tenant.namespace, '-o', 'wide'])).toContain('FILES');
    const part0 = () => getObject('agentrunfilepart', 'report.f00', tenant.namespace);
    expect(await part0()).toBeDefined();
    await kubectlOk(['delete', 'agentrun', 'report', '-n', tenant.namespace]);
    await eventually('the file went with its run', async () => (await part0()) === undefined);
    expect((await fetch(address)).status).toBe(404);
  });
});
