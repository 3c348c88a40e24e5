/** What an agent works with in a real pod: a shell that keeps its directory, commands in the background, and files as text. */
import { jest } from '@jest/globals';
import { finishedRun, toolOk } from './support/mcp.js';
import { createRun, ended } from './support/runs.js';
import { createTenant } from './support/tenant.js';
import type { Tenant } from './support/tenant.js';

jest.setTimeout(900_000);

describe('the tools of a run pod', () => {
  let tenant: Tenant;

  beforeAll(async () => {
    tenant = await createTenant('e2e-pod-tools');
    await tenant.agent('worker');
  });

  afterAll(async () => {
    await tenant.remove();
  });

  /** Results of the calls, in their order. */
  async function results(name: string, directives: string[]): Promise<Record<string, unknown>[]> {
    await createRun(tenant, 'worker', [...directives, '/say Done.'].join('\n'), name);
    expect((await ended(tenant, name)).status).toMatchObject({ phase: 'done', output: 'Done.' });
    const { toolCalls = [] } = await finishedRun(tenant.apiKey, tenant.agentId('worker'), name);
    return toolCalls.map(({ result }) => JSON.parse(result) as Record<string, unknown>);
  }
  const use = (tool: string, input: object) => `/tool ${tool} ${JSON.stringify(input)}`;

  test('the shell keeps directory and exported variables, and a background command goes on between calls', async () => {
    const server = 'echo $NAME; until [ -e ../go ]; do sleep 0.1; done; echo went; sleep 600';
    const calls = await results('session', [
      '/shell mkdir -p sub && cd sub && export NAME=kept',
      '/shell pwd; echo $NAME',
      use('shell', { command: server, background: true }),
      '/shell touch ../go; sleep 1',
      use('shell_output', { id: 'b1' }),
      use('shell_stop', { id: 'b1' }),
      '/shell pgrep -cx sleep || true',
      use('shell', { command: 'true', timeoutSeconds: 900 }),
    ]);
    expect(calls.slice(0, 2)).toEqual([
      { exitCode: 0, directory: 'sub', output: '' },
      { exitCode: 0, directory: 'sub', output: '/workspace/sub\nkept\n' },
    ]);
    const outputs = calls.slice(2, 6).map(({ output }) => output);
    expect(calls[2]).toMatchObject({ background: 'b1', running: true });
    expect(outputs[0]).toBe('kept\n');
    expect(outputs[2]).toBe('went\n');
    expect(calls[5]).toMatchObject({ background: 'b1', signal: 'SIGTERM' });
    expect(calls[6]).toMatchObject({ output: '0\n' });
    expect(calls[7]).toMatchObject({
      exitCode: 0,
      note: 'timeoutSeconds was 900; at most 600 is allowed, so 600 was used',
    });
  });

  test('the script of a skill runs where reading the skill has laid it', async () => {
    await toolOk(tenant.apiKey, 'upsert_skill', {
      agentId: tenant.agentId('worker'),
      name: 'Check links',
      description: 'Use it to check links.',
      body: '# Check links\nRun scripts/check.sh.',
      files: [{ path: 'scripts/check.sh', content: '#!/bin/sh\necho checked\n' }],
    });
    const [read, ran] = await results('skill', [
      use('read_skill', { slug: 'check-links' }),
      '/shell /workspace/.skills/check-links/scripts/check.sh',
    ]);
    expect(read).toMatchObject({ slug: 'check-links', directory: '/workspace/.skills/check-links' });
    expect(ran).toEqual({ exitCode: 0, output: 'checked\n' });
  });

  test('files come as text, grep is that of the image, and an edit that does not fit shows where it may', async () => {
    const calls = await results('files', [
      use('write', { path: 'src/a.ts', content: 'const port = 8080;\nconst host = "here";\n' }),
      use('write', { path: '.gitignore', content: 'dist/\n' }),
      use('write', { path: 'dist/a.js', content: 'const port = 8080;\n' }),
      use('read', { path: 'src/a.ts' }),
      use('grep', { pattern: '\\bport = \\d+', context: 1 }),
      use('edit', { path: 'src/a.ts', oldText: 'const port = 80;', newText: '' }),
      '/shell rg --version | head -1; cd / && mkdir /tmp/x',
    ]);
    expect(calls.slice(3, 6)).toEqual([
      { text: '1\tconst port = 8080;\n2\tconst host = "here";' },
      { text: 'src/a.ts\n1:const port = 8080;\n2-const host = "here";' },
      {
        error:
          'oldText does not occur in the file. The nearest place is line 1 (- as given, + as in the file):\n- const port = 80;\n+ const port = 8080;',
      },
    ]);
    expect(calls[6]).toMatchObject({ directory: '/', output: expect.stringMatching(/^ripgrep \d+\./) });
  });
});
