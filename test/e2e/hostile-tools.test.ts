/** The code of an agent does its worst in the tools container: each time the call fails, and the run goes on to its end. */
import { jest } from '@jest/globals';
import { readdir, readFile } from 'node:fs/promises';
import { eventually, getObject } from './support/install.js';
import { finishedRun } from './support/mcp.js';
import type { RunRecord } from './support/mcp.js';
import { createRun, ended } from './support/runs.js';
import { createTenant } from './support/tenant.js';
import type { Tenant } from './support/tenant.js';

jest.setTimeout(900_000);

interface Call {
  tool: string;
  isError: boolean;
  result: Record<string, unknown>;
}

describe('hostile code in the tools container', () => {
  let tenant: Tenant;

  beforeAll(async () => {
    // With a network: else nothing that needs one is offered.
    tenant = await createTenant('e2e-hostile-tools', {
      box: { egress: { mode: 'internet', requireEnforcement: false } },
    });
    await tenant.agent('worker');
    await tenant.agent('quiet', { tools: { shell: false, web: false } });
  });

  afterAll(async () => {
    await tenant.remove();
  });

  /** Runs the directives and ends with a word, which must come out. */
  async function survived(name: string, directives: string[], agent = 'worker'): Promise<Call[]> {
    await createRun(tenant, agent, [...directives, '/say Still here.'].join('\n'), name);
    expect((await ended(tenant, name)).status).toMatchObject({ phase: 'done', output: 'Still here.' });
    const run: RunRecord = await finishedRun(tenant.apiKey, tenant.agentId(agent), name);
    return (run.toolCalls ?? []).map(({ tool, isError, result }) => ({
      tool,
      isError,
      result: JSON.parse(result) as Record<string, unknown>,
    }));
  }
  const files = (tool: string, input: object) => `/files ${tool} ${JSON.stringify(input)}`;

  test('200 MB of output: head and tail are shown, 10 MiB are kept, and no memory runs out', async () => {
    const [flood, size] = await survived('flood', [
      '/shell echo first; head -c 200000000 /dev/zero | tr "\\0" x; echo last',
      '/shell stat -c %s .runs/flood/*.log',
    ]);
    expect(flood).toMatchObject({ isError: false, result: { exitCode: 0, outputBytes: 200_000_011 } });
    const output = String(flood?.result['output']);
    expect(output).toMatch(/^first\nx+/);
    expect(output).toMatch(/x+last\n$/);
    expect(Buffer.byteLength(output)).toBeLessThan(31_000);
    expect(size?.result['output']).toBe(`${10 * 1024 * 1024}\n`);
  });

  test('a fork bomb is ended, and the next call works', async () => {
    const [, after] = await survived('bomb', [
      '/shell bomb() { bomb | bomb & }; bomb',
      '/shell for i in $(seq 60); do n=$(ls -d /proc/[0-9]* | wc -l); [ "$n" -lt 50 ] && break; sleep 1; done; echo "few: $((n < 50))"',
    ]);
    expect(after?.result['output']).toContain('few: 1');
  });

  test('a command that ignores TERM is killed at its time limit', async () => {
    const command = "trap '' TERM; while :; do sleep 1; done";
    const [stubborn] = await survived('stubborn', [`/tool shell ${JSON.stringify({ command, timeoutSeconds: 2 })}`]);
    expect(stubborn).toMatchObject({
      isError: true,
      result: { signal: 'SIGKILL', error: 'The command was stopped after 2 seconds.' },
    });
  });

  test('what left its process group goes with the run', async () => {
    const mark = `86400.${Date.now() % 100_000}`;
    const [left] = await survived('leftover', [
      `/shell setsid nohup sleep ${mark} >/dev/null 2>&1 & sleep 1; pgrep -f ${mark}`,
    ]);
    expect(left).toMatchObject({ isError: false, result: { output: expect.stringMatching(/^\d+\n/) } });
    await eventually('the Job is complete', async () => {
      const job = await getObject<{ status?: { succeeded?: number } }>('job', 'leftover', tenant.namespace);
      return job?.status?.succeeded === 1;
    });
    // The cluster's nodes are containers or processes of this machine.
    await eventually('no process is left', async () => !(await commandLines()).some((line) => line.includes(mark)));
  });

  test('tools that run out of memory are a failed call', async () => {
    const [greedy, after] = await survived('greedy', ['/shell tail /dev/zero', '/shell echo back']);
    expect(greedy?.isError).toBe(true);
    expect(after?.result['output']).toBe('back\n');
  });

  test('a socket that was taken over can fail calls, and nothing more', async () => {
    const path = '/var/run/boxwright/tools/tools.sock';
    const script = `
import { createServer } from 'node:net';
import { chmodSync, rmSync, writeFileSync } from 'node:fs';
const frame = (text) => { const b = Buffer.alloc(4 + Buffer.byteLength(text)); b.writeUInt32BE(b.length - 4); b.write(text, 4); return b; };
const result = frame('{"type":"result","isError":false,"result":{"forged":true}}');
const endless = (socket) => { const pour = () => { while (!socket.destroyed && socket.write(Buffer.concat(Array(1000).fill(result)))); }; socket.on('drain', pour); pour(); };
const turns = [
  endless,
  (socket) => socket.write(Buffer.from([0xff, 0xff, 0xff, 0xff])),
  (socket) => socket.write(frame('['.repeat(100) + ']'.repeat(100))),
  (socket) => socket.write(frame('{"type":')),
  (socket) => socket.destroy(),
  (socket) => socket.write(frame(JSON.stringify({ type: 'result', isError: false, result: { text: 'x'.repeat(1000000) } }))),
];
rmSync('${path}', { force: true });
createServer((socket) => { socket.on('error', () => undefined); socket.once('data', () => (turns.shift() ?? (() => undefined))(socket)); }).listen('${path}', () => { chmodSync('${path}', 0o777); writeFileSync('taken', ''); });
`;
    const calls = await survived('rebound', [
      files('write', { path: 'evil.mjs', content: script }),
      '/shell setsid node evil.mjs >/dev/null 2>&1 & until [ -e taken ]; do sleep 0.2; done',
      ...Array.from({ length: 6 }, () => '/shell echo hello'),
    ]);
    const [endless, ...others] = calls.slice(2);
    // The first result of the flood may be whole before the second arrives: it is text for the model, and no report.
    expect(endless?.result).not.toHaveProperty('output');
    const broken = { isError: true, result: { error: 'The tools container broke the protocol of the tools socket.' } };
    expect(others.slice(0, 3)).toMatchObject([broken, broken, broken]);
    expect(others[3]?.isError).toBe(true);
    expect(JSON.stringify(others[4]?.result).length).toBeLessThan(40_000);
  });

  test('links lead no file tool out of the workspace', async () => {
    const [, ...calls] = await survived('links', [
      '/shell ln -s /etc/passwd passwd; ln -s / root; ln -s /var/run/boxwright/tools sockets; ln -s loop loop',
      files('read', { path: 'passwd' }),
      files('read', { path: 'root/etc/passwd' }),
      files('write', { path: 'sockets/x', content: 'x' }),
      files('edit', { path: 'passwd', oldText: 'root', newText: 'me' }),
      files('list', { path: 'root' }),
      files('read', { path: '../etc/passwd' }),
      files('read', { path: 'loop' }),
      files('grep', { pattern: 'root:' }),
      files('glob', { pattern: '**/passwd' }),
    ]);
    expect(calls.slice(0, 7).map(({ isError }) => isError)).toEqual(Array(7).fill(true));
    expect(calls.slice(7).map(({ result }) => result)).toEqual([
      { text: '[nothing matches]' },
      { text: '[no file matches]' },
    ]);
  });

  test('tools that are switched off are not there', async () => {
    await createRun(tenant, 'quiet', '/shell id\n/say Never.', 'switched-off');
    expect((await ended(tenant, 'switched-off')).status).toMatchObject({
      phase: 'done',
      output: expect.stringContaining('the tool shell is not there'),
    });
  });

  test('fetch and a server on this machine: nothing inside the pod or the cluster is reached', async () => {
    const calls = await survived('inside', [
      '/tool fetch {"url":"http://127.0.0.1:8443/"}',
      '/tool fetch {"url":"http://169.254.169.254/latest/meta-data/"}',
      '/tool fetch {"url":"https://10.96.0.1/version"}',
      '/tool fetch {"url":"http://[::ffff:127.0.0.1]/"}',
    ]);
    for (const { isError, result } of calls) {
      expect({ isError, error: result['error'] }).toEqual({
        isError: true,
        error: expect.stringMatching(/is not an address of the public internet; only those can be fetched\.$/),
      });
    }
  });
});

async function commandLines(): Promise<string[]> {
  const names = (await readdir('/proc')).filter((name) => /^\d+$/.test(name));
  return Promise.all(names.map((pid) => readFile(`/proc/${pid}/cmdline`, 'utf8').catch(() => '')));
}
