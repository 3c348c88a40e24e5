/** Parts of the control plane go away while a model call is in flight: the run goes on, and the call is charged once. */
import { jest } from '@jest/globals';
import { kill, podsOf, scaled } from '../support/control-plane.js';
import { eventually, kubectlOk, RELEASE_NAMESPACE } from '../support/install.js';
import { claimed, createRun, ended, readRun } from '../support/runs.js';
import type { RunObject } from '../support/runs.js';
import { createTenant } from '../support/tenant.js';
import type { Tenant } from '../support/tenant.js';
import { startProviderPod } from '../support/vendor.js';
import type { ProviderPod } from '../support/vendor.js';

jest.setTimeout(900_000);

const usage = { input: 100, output: 10 };

describe('losses in the middle of a model call', () => {
  let vendors: ProviderPod;
  let tenant: Tenant;

  beforeAll(async () => {
    vendors = await startProviderPod('e2e-gateway-loss');
    tenant = await createTenant('e2e-gateway-loss', { box: { ...vendors.box, resources: { memory: '64Mi' } } });
    await vendors.giveKeys(tenant);
    await tenant.agent('worker', { provider: 'anthropic', model: 'claude-sonnet-5' });
  });

  afterAll(async () => {
    await scaled('boxwright-gateway', 2);
    await scaled('boxwright-api', 2);
    await tenant.removed();
    await vendors.remove();
  });

  /** A run whose first call hangs at the vendor, and stands in its status as open. */
  async function inCall(name: string): Promise<RunObject> {
    await vendors.script(name, { fault: 'hang' }, { text: 'After the loss.', usage });
    await createRun(tenant, 'worker', `Go. [case:${name}]`, name);
    await claimed(tenant, name);
    return eventually('the call stands open in the status', async () => {
      const run = await readRun(tenant, name);
      return run?.status?.openCall === undefined ? undefined : run;
    });
  }

  /** What was lost is charged with what was read, what was answered with what the vendor gave; each once. */
  async function expectChargedOnce(name: string, before: RunObject): Promise<RunObject> {
    const run = await ended(tenant, name);
    expect(run.status).toMatchObject({ phase: 'done', reason: 'Completed', output: 'After the loss.' });
    const { openCall } = before.status ?? {};
    // The vendor had not said a word.
    expect(openCall?.outputTokens).toBe(0);
    expect(openCall?.inputTokens).toBeGreaterThan(500);
    expect(run.status?.usage).toMatchObject({
      steps: 1,
      inputTokens: (openCall?.inputTokens ?? 0) + usage.input,
      outputTokens: (openCall?.outputTokens ?? 0) + usage.output,
    });
    expect(run.status?.openCall).toBeUndefined();
    const seen = await vendors.seen(name);
    expect(seen.map(({ gone, given }) => ({ gone, given }))).toEqual([{ gone: true }, { gone: false, given: usage }]);
    return run;
  }

  test('its gateway pod is killed: another takes the run over', async () => {
    const before = await inCall('one-gateway');
    await kill(RELEASE_NAMESPACE, before.status?.claim?.gatewayPod ?? '');

    const run = await expectChargedOnce('one-gateway', before);

    expect(run.status?.claim?.gatewayPod).not.toBe(before.status?.claim?.gatewayPod);
    expect(run.status?.claim?.epoch).toBeGreaterThan(before.status?.claim?.epoch ?? 0);
    expect(run.status?.claim?.podUid).toBe(before.status?.claim?.podUid);
    await scaled('boxwright-gateway', 2);
  });

  test('all gateway pods are away for a while: the call is made again when one is back', async () => {
    const before = await inCall('no-gateway');
    const pods = await podsOf('gateway');
    await kubectlOk(['-n', RELEASE_NAMESPACE, 'scale', 'deployment/boxwright-gateway', '--replicas=0']);
    for (const pod of pods) await kill(RELEASE_NAMESPACE, pod);
    await scaled('boxwright-gateway', 0);
    await eventually('the vendor sees that the call is cut', async () => {
      const [first] = await vendors.seen('no-gateway');
      return first?.gone === true ? first : undefined;
    });
    expect((await readRun(tenant, 'no-gateway'))?.status?.phase).toBe('running');
    await scaled('boxwright-gateway', 2);

    const run = await expectChargedOnce('no-gateway', before);

    expect(pods).not.toContain(run.status?.claim?.gatewayPod);
    expect(run.status?.claim?.epoch).toBeGreaterThan(before.status?.claim?.epoch ?? 0);
    expect(run.status?.claim?.podUid).toBe(before.status?.claim?.podUid);
  });

  test('all api pods are killed: the run does not notice', async () => {
    const shell = {
      tool: 'shell',
      input: { command: 'sleep 15' },
    };
    await vendors.script('no-api', { calls: [shell], usage }, { text: 'Undisturbed.', usage });
    await createRun(tenant, 'worker', 'Go. [case:no-api]', 'no-api');
    const before = await claimed(tenant, 'no-api');
    for (const pod of await podsOf('api')) await kill(RELEASE_NAMESPACE, pod);

    const run = await ended(tenant, 'no-api');

    expect(run.status).toMatchObject({ phase: 'done', output: 'Undisturbed.', claim: before.status?.claim });
    expect(run.status?.usage).toMatchObject({ steps: 2, inputTokens: 200, outputTokens: 20 });
    await scaled('boxwright-api', 2);
  });
});
