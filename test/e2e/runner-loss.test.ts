/** The runner process itself is lost: killed in the middle of a step, or out of memory. The run ends once, with a reason. */
import { jest } from '@jest/globals';
import { eventually, getObject, kubectlOk } from './support/install.js';
import { toolOk } from './support/mcp.js';
import type { RunRecord } from './support/mcp.js';
import { killContainer } from './support/node.js';
import { claimed, createRun, ended, readRun, settled } from './support/runs.js';
import { createTenant } from './support/tenant.js';
import type { Tenant } from './support/tenant.js';
import { startProviderPod } from './support/vendor.js';
import type { ProviderPod } from './support/vendor.js';

jest.setTimeout(900_000);

describe('a runner that is lost', () => {
  let vendors: ProviderPod;
  let tenant: Tenant;
  let small: Tenant;

  beforeAll(async () => {
    vendors = await startProviderPod('e2e-runner-loss');
    tenant = await createTenant('e2e-runner-loss', { box: { ...vendors.box, resources: { memory: '64Mi' } } });
    await vendors.giveKeys(tenant);
    await tenant.agent('worker', { provider: 'anthropic', model: 'claude-sonnet-5' });
    small = await createTenant('e2e-runner-memory', {
      box: { ...vendors.box, resources: { memory: '64Mi', runnerMemory: '64Mi' } },
    });
    await vendors.giveKeys(small);
    await small.agent('worker', { provider: 'anthropic', model: 'claude-sonnet-5' });
  });

  afterAll(async () => {
    await small.remove();
    await tenant.remove();
    await vendors.remove();
  });

  /** All pods that a run ever had are one. */
  async function expectOnePod(run: string): Promise<void> {
    // The Job controller counts later than the run ends.
    const counted = await eventually(`the pod of ${run} is counted in its Job`, async () => {
      const job = await getObject<{ status: { failed?: number; succeeded?: number } }>('job', run, tenant.namespace);
      const pods = (job?.status.failed ?? 0) + (job?.status.succeeded ?? 0);
      return pods > 0 ? pods : undefined;
    });
    expect(counted).toBe(1);
    const pods = ['get', 'pods', '-n', tenant.namespace, '-l', `boxwright.dev/run=${run}`, '-o', 'name'];
    expect((await kubectlOk(pods)).trim().split('\n')).toHaveLength(1);
  }

  test('killed in the middle of a tool call: RunnerFailed, what was reported and spent is kept, nothing runs again', async () => {
    const usage = { input: 300, output: 20 };
    await vendors.script(
      'in-a-tool',
      { text: 'First.', calls: [{ tool: 'shell', input: { command: 'echo one' } }], usage },
      { text: 'Second.', calls: [{ tool: 'shell', input: { command: 'sleep 280', timeoutSeconds: 600 } }], usage },
    );
    await createRun(tenant, 'worker', 'Go. [case:in-a-tool]', 'in-a-tool');
    const run = await claimed(tenant, 'in-a-tool');
    await eventually('two answers are counted', async () => {
      const status = (await readRun(tenant, 'in-a-tool'))?.status;
      return status?.usage?.steps === 2;
    });
    await eventually('the first tool call is stored', async () => {
      const { toolCalls } = await record('in-a-tool');
      return toolCalls?.length === 1;
    });

    await killContainer(tenant.namespace, run.status?.claim?.podName ?? '', 'runner');

    const over = await ended(tenant, 'in-a-tool');
    expect(over.status).toMatchObject({
      phase: 'error',
      reason: 'RunnerFailed',
      message: expect.stringContaining('The runner ended without a result (exit code 137).'),
    });
    const { status } = await settled(tenant, 'in-a-tool');
    expect(status?.usage).toMatchObject({ steps: 2, inputTokens: 600, outputTokens: 40 });
    expect((await record('in-a-tool')).toolCalls).toEqual([expect.objectContaining({ tool: 'shell', step: 1 })]);
    await expectOnePod('in-a-tool');
  });

  test('killed in the middle of a model call: the call is charged once, with what was read', async () => {
    await vendors.script('in-a-call', { fault: 'hang' });
    await createRun(tenant, 'worker', 'Go. [case:in-a-call]', 'in-a-call');
    const run = await claimed(tenant, 'in-a-call');
    await eventually('the call is open', async () => (await readRun(tenant, 'in-a-call'))?.status?.openCall);

    await killContainer(tenant.namespace, run.status?.claim?.podName ?? '', 'runner');

    const over = await ended(tenant, 'in-a-call');
    expect(over.status).toMatchObject({ phase: 'error', reason: 'RunnerFailed' });
    const { status } = await settled(tenant, 'in-a-call');
    expect(status?.openCall).toBeUndefined();
    expect(status?.usage).toMatchObject({ steps: 0, outputTokens: 0 });
    expect(status?.usage?.inputTokens).toBeGreaterThan(500);
    const [request, ...more] = await vendors.seen('in-a-call');
    expect(request).toMatchObject({ gone: true });
    expect(more).toEqual([]);
    await expectOnePod('in-a-call');
  });

  test('a pod that is deleted between calls of tools: with retries a second run goes on, and sees what was done', async () => {
    await tenant.agent('stubborn', { provider: 'anthropic', model: 'claude-sonnet-5', retries: 1 });
    await vendors.script(
      'goes-on',
      { text: 'First.', calls: [{ tool: 'shell', input: { command: 'echo $((6 * 7))-is-done' } }] },
      { fault: 'hang' },
      { text: 'It was done.' },
    );
    await createRun(tenant, 'stubborn', 'Go. [case:goes-on]', 'goes-on');
    const run = await claimed(tenant, 'goes-on');
    await eventually('the model is asked again', async () => (await vendors.seen('goes-on')).length === 2);
    await kubectlOk(['delete', 'pod', run.status?.claim?.podName ?? '', '-n', tenant.namespace, '--wait=false']);

    expect((await ended(tenant, 'goes-on')).status).toMatchObject({ reason: 'Interrupted', atRest: true });
    const lost = await eventually('the run is taken further', async () => {
      const found = await readRun(tenant, 'goes-on');
      return found?.status?.retriedBy === undefined ? undefined : found;
    });
    const retry = await ended(tenant, lost.status?.retriedBy ?? '');
    expect(retry.status).toMatchObject({ phase: 'done', output: 'It was done.' });
    expect(retry.spec).toMatchObject({ retryOf: { name: 'goes-on', attempt: 1 }, sessionId: 's-goes-on' });
    // The marker of the case stands in the message of the lost run alone, and the call was made once.
    const requests = await vendors.seen('goes-on', '42-is-done');
    expect(requests.map(({ holds }) => holds)).toEqual([false, true, true]);
  });

  test('an answer that its memory cannot hold: OOMKilled, with the field to raise', async () => {
    // Just below the 4 Mi characters that the gateway passes: its 12 MiB, received and put together, are more than is left.
    await vendors.script('too-much', { text: '€', times: 4 * 1024 * 1024 - 1024 });
    await createRun(small, 'worker', 'Go. [case:too-much]', 'too-much');

    const over = await ended(small, 'too-much');

    expect(over.status).toMatchObject({ phase: 'error', reason: 'OOMKilled' });
    expect(over.status?.message).toContain('spec.resources.runnerMemory');
    expect(over.status?.claim).toBeDefined();
    expect(await vendors.seen('too-much')).toHaveLength(1);
  });

  function record(run: string) {
    const agentId = tenant.agentId('worker');
    return toolOk<RunRecord>(tenant.apiKey, 'get_run', { agentId, runId: run, includeToolCalls: true });
  }
});
