/** What a vendor does wrong, in real pods: each run ends with a reason and words for a person, and is charged once. */
import { jest } from '@jest/globals';
import { eventually, kubectlOk } from './support/install.js';
import { finishedRun } from './support/mcp.js';
import { createRun, settled } from './support/runs.js';
import type { RunObject } from './support/runs.js';
import { createTenant } from './support/tenant.js';
import type { Tenant } from './support/tenant.js';
import { startProviderPod, VENDOR_KEY } from './support/vendor.js';
import type { ProviderPod } from './support/vendor.js';
import type { ScriptedAnswer } from './support/vendor-process.js';

jest.setTimeout(900_000);

interface FaultCase {
  name: string;
  answers: ScriptedAnswer[];
  /** Of the status of the run. */
  status: object;
  /** Calls that the vendor saw, or at least so many. */
  calls: number | { atLeast: number };
  /** `none`: nothing was used. Else what was given, with what was read and written of answers that broke off. */
  usage: 'none' | { steps: number; inputTokens: number; outputTokens: number };
}

const usage = { input: 100, output: 10 };
const busy: ScriptedAnswer = { fault: 'status', status: 500, message: 'Internal error' };
const whole: ScriptedAnswer = { text: 'Whole.', usage };
const look: ScriptedAnswer = { calls: [{ tool: 'list', input: {} }], usage };
const failed = (message: unknown) => ({ phase: 'error', reason: 'ModelError', message });

const CASES: FaultCase[] = [
  {
    name: 'unauthorised',
    answers: [{ fault: 'status', status: 401, message: `invalid key ${VENDOR_KEY}` }],
    status: failed(
      'anthropic answered HTTP 401: invalid key [redacted]. Check key ANTHROPIC_API_KEY of Secret models in namespace bw-e2e-faults: it may be wrong, or without access to this model.',
    ),
    calls: 1,
    usage: 'none',
  },
  {
    name: 'slow-down',
    answers: [
      { fault: 'status', status: 429, message: 'Slow down.', retryAfter: '3' },
      { text: 'After the wait.', usage },
    ],
    status: { phase: 'done', reason: 'Completed', output: 'After the wait.' },
    calls: 2,
    usage: { steps: 1, inputTokens: 100, outputTokens: 10 },
  },
  {
    name: 'slow-down-for-an-hour',
    answers: [{ fault: 'status', status: 429, message: 'Slow down.', retryAfter: '3600' }],
    status: failed('anthropic answered HTTP 429: Slow down. It asks to wait 3600 seconds.'),
    calls: 1,
    usage: 'none',
  },
  {
    name: 'broken',
    answers: [busy],
    status: failed(
      expect.stringMatching(
        /^anthropic answered HTTP 500: Internal error\. It was tried \d+ times within 20 s \(spec\.bounds\.modelCallSeconds of the Box\)\.$/,
      ),
    ),
    calls: { atLeast: 4 },
    usage: 'none',
  },
  {
    name: 'busy-for-a-while',
    answers: [busy, busy, busy, whole],
    status: { phase: 'done', reason: 'Completed', output: 'Whole.' },
    calls: 4,
    usage: { steps: 1, inputTokens: 100, outputTokens: 10 },
  },
  {
    name: 'cut',
    answers: [{ fault: 'cut', said: { text: '', usage: { input: 90, output: 1 } } }, whole],
    status: { phase: 'done', reason: 'Completed', output: 'Whole.' },
    calls: 2,
    usage: { steps: 1, inputTokens: 190, outputTokens: 11 },
  },
  {
    name: 'reset',
    answers: [{ fault: 'reset' }, whole],
    status: { phase: 'done', reason: 'Completed', output: 'Whole.' },
    calls: 2,
    usage: { steps: 1, inputTokens: 100, outputTokens: 10 },
  },
  {
    name: 'web-page',
    answers: [{ fault: 'html' }, whole],
    status: { phase: 'done', reason: 'Completed', output: 'Whole.' },
    calls: 2,
    usage: { steps: 1, inputTokens: 100, outputTokens: 10 },
  },
  {
    name: 'invalid-json',
    answers: [{ fault: 'invalid-json' }, whole],
    status: { phase: 'done', reason: 'Completed', output: 'Whole.' },
    calls: 2,
    usage: { steps: 1, inputTokens: 100, outputTokens: 10 },
  },
  {
    name: 'empty',
    answers: [{ fault: 'empty' }, whole],
    status: { phase: 'done', reason: 'Completed', output: 'Whole.' },
    calls: 2,
    usage: { steps: 1, inputTokens: 100, outputTokens: 10 },
  },
  {
    name: 'after-a-step',
    answers: [look, { fault: 'status', status: 400, message: 'Your credit balance is too low.' }],
    status: failed('anthropic answered HTTP 400: Your credit balance is too low.'),
    calls: 2,
    usage: { steps: 1, inputTokens: 100, outputTokens: 10 },
  },
  {
    name: 'endless-loop',
    answers: [look],
    status: { phase: 'done', reason: 'StepLimitReached', message: 'The agent used all 4 steps of its limit.' },
    calls: 4,
    usage: { steps: 4, inputTokens: 400, outputTokens: 40 },
  },
];

describe('vendors that fail', () => {
  let vendors: ProviderPod;
  let tenant: Tenant;

  beforeAll(async () => {
    vendors = await startProviderPod('e2e-faults');
    // Patience lasts as long as the Box says.
    const bounds = { modelCallSeconds: 20 };
    const box = {
      ...vendors.box,
      resources: { memory: '64Mi', cpu: '200m' },
      maxRunning: 6,
      maxRunningPerAgent: 6,
      bounds,
    };
    tenant = await createTenant('e2e-faults', { box });
    await vendors.giveKeys(tenant);
    await tenant.agent('claude', { provider: 'anthropic', model: 'claude-sonnet-5', stepLimit: 4 });
    await tenant.agent('local', { provider: 'boxwright', model: 'my-model' });
  });

  afterAll(async () => {
    await tenant.remove();
    await vendors.remove();
  });

  test('each run goes on or ends with the words of its case, and is charged with what was used', async () => {
    for (const { name, answers } of CASES) {
      await vendors.script(name, ...answers);
      await createRun(tenant, 'claude', `Go. [case:${name}]`, name);
    }

    for (const one of CASES) {
      const run = await settled(tenant, one.name);
      expect({ name: one.name, status: run.status }).toMatchObject({ name: one.name, status: one.status });
      const calls = (await vendors.seen(one.name)).length;
      if (typeof one.calls === 'number')
        expect({ name: one.name, calls }).toEqual({ name: one.name, calls: one.calls });
      else expect(calls).toBeGreaterThanOrEqual(one.calls.atLeast);
      expectUsage(one, run);
      expect(JSON.stringify(run)).not.toContain(VENDOR_KEY);
    }
    const shown = await kubectlOk(['get', 'agentrun', 'broken', '-n', tenant.namespace, '-o', 'yaml']);
    expect(shown).toContain('reason: ModelError');
    expect(shown).toContain('anthropic answered HTTP 500: Internal error.');
  });

  test('tool arguments that are not JSON, and a tool that is not there, are tool errors; the run goes on', async () => {
    await vendors.script(
      'odd-arguments',
      { calls: [{ tool: 'shell', input: {}, raw: '{"command": "ls' }], usage },
      { calls: [{ tool: 'shell', input: { order: 66 } }], usage },
      { calls: [{ tool: 'launch_missiles', input: {} }], usage },
      { text: 'I gave up.', usage },
    );
    await createRun(tenant, 'local', 'Go. [case:odd-arguments]', 'odd-arguments');

    const run = await settled(tenant, 'odd-arguments');

    expect(run.status).toMatchObject({ phase: 'done', reason: 'Completed', output: 'I gave up.' });
    expect(run.status?.usage).toMatchObject({ steps: 4, inputTokens: 400, outputTokens: 40 });
    const { toolCalls } = await finishedRun(tenant.apiKey, tenant.agentId('local'), 'odd-arguments');
    expect(toolCalls?.map(({ step, tool, isError }) => ({ step, tool, isError }))).toEqual([
      { step: 1, tool: 'shell', isError: true },
      { step: 2, tool: 'shell', isError: true },
      { step: 3, tool: 'launch_missiles', isError: true },
    ]);
  });

  test('a key that is wrong is named with its place, and never shown; the right one is used at once', async () => {
    await vendors.giveKeys(tenant, 'sk-wrong-0123456789abcdef');
    await vendors.script('wrong-key', { text: 'Now it is right.', usage });
    // The gateway may know the key that was right for up to 30 s.
    let attempt = 0;
    const refused = await eventually('the wrong key is used', async () => {
      const name = `wrong-key-${(attempt += 1)}`;
      await createRun(tenant, 'local', 'Go. [case:wrong-key]', name);
      const run = await settled(tenant, name);
      return run.status?.phase === 'error' ? run : undefined;
    });
    expect(refused.status).toMatchObject({
      reason: 'ModelError',
      message:
        'boxwright answered HTTP 401: invalid key [redacted]. Check key API_KEY of Secret models in namespace bw-e2e-faults: it may be wrong, or without access to this model.',
    });

    await vendors.giveKeys(tenant);

    await eventually('the right key is used', async () => {
      const name = `right-key-${(attempt += 1)}`;
      await createRun(tenant, 'local', 'Go. [case:wrong-key]', name);
      return (await settled(tenant, name)).status?.phase === 'done';
    });
  });
});

function expectUsage({ name, usage: expected }: FaultCase, run: RunObject): void {
  const { steps, inputTokens = 0, outputTokens } = run.status?.usage ?? {};
  const used = { name, steps, inputTokens, outputTokens };
  if (expected === 'none') expect(used).toEqual({ name, steps: 0, inputTokens: 0, outputTokens: 0 });
  else expect(used).toEqual({ name, ...expected });
  expect(run.status?.openCall).toBeUndefined();
}
