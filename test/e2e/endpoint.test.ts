/** The probe of a Box's own endpoint: the gateway tries it, and the Box says what it found. */
import { jest } from '@jest/globals';
import { conditionOf, type Condition } from './support/conditions.js';
import { eventually, getObject, kubectlOk } from './support/install.js';
import { createTenant } from './support/tenant.js';
import type { Tenant } from './support/tenant.js';
import { startProviderPod, VENDOR_KEY } from './support/vendor.js';
import type { ProviderPod } from './support/vendor.js';

jest.setTimeout(900_000);

/** The probe's conversation holds no marker of a case. */
const PROBE = '';

describe('the endpoint of a Box', () => {
  let vendors: ProviderPod;
  let tenant: Tenant;

  beforeAll(async () => {
    vendors = await startProviderPod('e2e-endpoint');
    await vendors.script(PROBE, { calls: [{ tool: 'report_ready', input: { word: 'ready' } }] });
    tenant = await createTenant('e2e-endpoint', { box: vendors.box });
  });

  afterAll(async () => {
    await tenant.remove();
    await vendors.remove();
  });

  async function shown(reason: string): Promise<Condition> {
    return eventually(`the Box says ${reason}`, async () => {
      const condition = await conditionOf('EndpointReady', 'box', tenant.box);
      return condition?.reason === reason ? condition : undefined;
    });
  }

  async function takeModel(model: string): Promise<void> {
    const patch = JSON.stringify({ spec: { endpoint: { model } } });
    await kubectlOk(['patch', 'box', tenant.box, '--type=merge', '-p', patch]);
  }

  test('is tried by the gateway: the key, the models and a call with a tool; the Box says what to mend', async () => {
    const missing = await shown('KeyNotUsable');
    expect(missing).toMatchObject({
      status: 'False',
      message: `there is no key API_KEY of Secret models in namespace ${tenant.namespace}: create it`,
    });

    await vendors.giveKeys(tenant);
    expect((await shown('ToolCallsWork')).status).toBe('True');
    const [request] = await vendors.seen(PROBE);
    expect(request).toMatchObject({ vendor: 'local', path: '/local/v1/chat/completions' });
    expect(request?.headers['authorization']).toBe(`Bearer ${VENDOR_KEY}`);

    await vendors.script(PROBE, { text: '<tool_call>{"name":"report_ready"}</tool_call>' });
    await takeModel('without-parser');
    const silent = await shown('NoToolCall');
    expect(silent.status).toBe('False');
    expect(silent.message).toContain('model without-parser');
    expect(silent.message).toContain('--tool-call-parser');

    await vendors.giveKeys(tenant, 'sk-wrong-0123456789abcdef');
    const refused = await shown('EndpointRefused');
    expect(refused.message).toContain(`check key API_KEY of Secret models in namespace ${tenant.namespace}`);
    expect(refused.message).not.toContain('sk-wrong');
    // Both gateway pods are there, and one of them asks.
    expect(await vendors.seen(PROBE)).toHaveLength(2);
  });

  test('says nothing any more when the Box has none', async () => {
    const patch = '[{"op":"remove","path":"/spec/endpoint"},{"op":"add","path":"/spec/engine","value":"scripted"}]';
    await kubectlOk(['patch', 'box', tenant.box, '--type=json', '-p', patch]);
    await eventually('the condition is gone', async () => {
      const box = await getObject<{ status: { endpointProbe?: object } }>('box', tenant.box);
      const found = await conditionOf('EndpointReady', 'box', tenant.box);
      return box !== undefined && box.status.endpointProbe === undefined && found === undefined;
    });
  });
});
