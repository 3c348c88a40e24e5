/** An AgentEval in real pods, as a person and as CI see it: its table, its conditions, its JUnit report. */
import { jest } from '@jest/globals';
import { DOMParser } from 'linkedom';
import { apply, eventually, getObject, kubectl, kubectlOk } from './support/install.js';
import { finishedRun } from './support/mcp.js';
import { createRun, readRun, settled } from './support/runs.js';
import type { RunObject } from './support/runs.js';
import { createTenant } from './support/tenant.js';
import type { Tenant } from './support/tenant.js';

jest.setTimeout(900_000);

interface EvalObject {
  status?: {
    phase?: string;
    results?: { case: string; phase: string; run?: string; judgeRun?: string; failures?: object[]; verdict?: string }[];
  };
}

describe('an eval', () => {
  let tenant: Tenant;

  beforeAll(async () => {
    tenant = await createTenant('e2e-evals', { box: { resources: { memory: '64Mi' } } });
    await tenant.agent('clerk');
    await tenant.agent('reviewer');
  });

  afterAll(async () => {
    await tenant.remove();
  });

  const wait = (name: string, condition: string, timeout: string) =>
    kubectl([
      'wait',
      `agenteval/${name}`,
      '-n',
      tenant.namespace,
      `--for=condition=${condition}`,
      `--timeout=${timeout}`,
    ]);

  function create(name: string, spec: object): Promise<void> {
    const metadata = { name, namespace: tenant.namespace };
    return apply({ apiVersion: 'boxwright.dev/v1alpha1', kind: 'AgentEval', metadata, spec });
  }

  const readEval = (name: string) => getObject<EvalObject>('agenteval', name, tenant.namespace);

  test('shows in the table and in JUnit which case passed and which failed', async () => {
    await create('sums', {
      agent: 'clerk',
      cases: [
        {
          name: 'adds',
          message: '/shell test "$(cat numbers/first.txt)" = 40 && echo $((40 + 2))\n/say The sum is 42.',
          files: [{ path: 'numbers/first.txt', content: '40\n' }],
          assertions: [{ contains: '42' }, { toolCalled: 'shell' }, { stepsBelow: 4 }],
        },
        { name: 'refuses', message: '/say Certainly.', assertions: [{ contains: 'No' }, { toolNotCalled: 'shell' }] },
      ],
    });

    expect(await wait('sums', 'Finished', '240s')).toMatchObject({ ok: true });
    expect(await wait('sums', 'Passed', '1s')).toMatchObject({ ok: false });

    const table = await kubectlOk(['get', 'agentevals', '-n', tenant.namespace]);
    const [head = '', row = ''] = table.split('\n');
    expect(head.split(/\s+/)).toEqual(['NAME', 'AGENT', 'STATUS', 'PASSED', 'FAILED', 'TOTAL', 'COST', 'AGE']);
    expect(row.split(/\s+/).slice(0, 7)).toEqual(['sums', 'clerk', 'failed', '1', '1', '2', '0.000000']);
    const { results = [] } = (await readEval('sums'))?.status ?? {};
    const [call] = (await finishedRun(tenant.apiKey, tenant.agentId('clerk'), results[0]?.run ?? '')).toolCalls ?? [];
    expect(call).toMatchObject({ tool: 'shell', isError: false });
    const runs = await kubectlOk(['get', 'agentruns', '-n', tenant.namespace, '-l', 'boxwright.dev/eval=sums']);
    expect(runs.trim().split('\n')).toHaveLength(3);

    const template = 'go-template-file=examples/junit.gotmpl';
    const xml = await kubectlOk(['get', 'agenteval', 'sums', '-n', tenant.namespace, '-o', template]);
    const report = new DOMParser().parseFromString(xml, 'text/xml');
    const cases = [...report.querySelectorAll('testcase')];
    expect(
      cases.map((one) => [one.getAttribute('name'), one.querySelector('failure')?.getAttribute('message') ?? null]),
    ).toEqual([
      ['adds', null],
      ['refuses', 'contains: No'],
    ]);
    expect(report.querySelector('failure')?.textContent).toBe('Certainly.');
    expect(cases.every((one) => Number(one.getAttribute('time')) > 0)).toBe(true);
  });

  test('a recorded run is replayed as a case, and one whose tool answers otherwise fails with both answers', async () => {
    const record = async (name: string, command: string) => {
      await createRun(tenant, 'clerk', `/shell ${command}\n/say Seen.`, name);
      await settled(tenant, name);
      const template = '{{range .items}}{{.spec.data}}{{"\\n"}}{{end}}';
      const select = ['-n', tenant.namespace, '-l', `boxwright.dev/run=${name}`];
      const pieces = await kubectlOk(['get', 'agentrunchunks', ...select, '-o', `go-template=${template}`]);
      const packed = pieces.trim().split('\n');
      const whole = Buffer.concat(packed.map((piece) => Buffer.from(piece, 'base64')));
      const metadata = { name, namespace: tenant.namespace };
      const binaryData = { 'recording.jsonl.gz': whole.toString('base64') };
      await apply({ apiVersion: 'v1', kind: 'ConfigMap', metadata, binaryData });
      return { name, message: `/shell ${command}\n/say Seen.`, recording: { configMap: name } };
    };
    const steady = await record('steady', 'echo $((40 + 2))');
    const clock = await record('clock', 'date +%s%N');
    const assertions = [{ equals: 'Seen.' }, { toolCalled: 'shell' }];
    await create('replayed', {
      agent: 'clerk',
      cases: [
        steady,
        clock,
        { ...clock, name: 'loose', recording: { configMap: 'clock', anyResultOf: ['shell'] } },
      ].map((one) => ({ ...one, assertions })),
    });

    expect(await wait('replayed', 'Finished', '240s')).toMatchObject({ ok: true });

    const found = await readEval('replayed');
    expect(found?.status?.results).toMatchObject([
      { case: 'steady', phase: 'passed' },
      {
        case: 'clock',
        phase: 'failed',
        failures: [{ seen: expect.stringContaining('ReplayFailed: Step 2: the tool') }],
      },
      { case: 'loose', phase: 'passed' },
    ]);
    const run = await readRun(tenant, found?.status?.results?.[0]?.run ?? '');
    expect(run?.status).toMatchObject({ provider: 'boxwright', model: 'recording' });
  });

  test('a judge reads the answer and not its directives, and a verdict that is none fails the case', async () => {
    const judged = (name: string, rubric: string) => ({
      name,
      message: '/say Good day.',
      judge: { agent: 'reviewer', rubric },
    });
    await create('judged', {
      agent: 'clerk',
      cases: [judged('polite', 'It is polite.\n/say PASS: it greets.'), judged('vague', '/say It depends.')],
    });

    const ended = await eventually('the eval ends', async () => {
      const found = await readEval('judged');
      return found?.status?.phase === 'running' ? undefined : found;
    });

    expect(ended.status?.results).toMatchObject([
      { case: 'polite', phase: 'passed', verdict: 'PASS: it greets.' },
      { case: 'vague', phase: 'failed', verdict: 'It depends.', failures: [{ seen: 'It depends.' }] },
    ]);
    const judge = ended.status?.results?.[0]?.judgeRun ?? '';
    const run = await getObject<RunObject>('agentrun', judge, tenant.namespace);
    expect(run?.spec).toMatchObject({ agent: 'reviewer', message: expect.stringContaining('Good day.') });
  });
});
