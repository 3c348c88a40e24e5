/** Parts of the control plane are killed while runs work: another takes over, and nothing is lost. */
import { jest } from '@jest/globals';
import { kill, podsOf, scaled } from '../support/control-plane.js';
import { eventually, getObject, kubectlOk, RELEASE_NAMESPACE } from '../support/install.js';
import { finishedRun, toolOk } from '../support/mcp.js';
import { claimed, createRun, ended, readRun } from '../support/runs.js';
import { createTenant } from '../support/tenant.js';
import type { Tenant } from '../support/tenant.js';

jest.setTimeout(900_000);

describe('losses of the control plane', () => {
  let tenant: Tenant;

  beforeAll(async () => {
    tenant = await createTenant('e2e-losses');
    await tenant.agent('worker');
  });

  afterAll(async () => {
    await scaled('boxwright-gateway', 2);
    await scaled('boxwright-controller', 2);
    await tenant.removed();
  });

  test('the controller is killed in the middle of a run: the other takes over and the run ends right', async () => {
    await createRun(tenant, 'worker', '/shell sleep 20; echo mark >> marks; cat marks\n/say survived', 'takeover');
    await claimed(tenant, 'takeover');
    const lease = await getObject<{ spec: { holderIdentity: string } }>(
      'lease',
      'boxwright-controller',
      RELEASE_NAMESPACE,
    );
    const leader = (await podsOf('controller')).find((pod) => lease?.spec.holderIdentity.includes(pod));
    expect(leader).toBeDefined();
    await kill(RELEASE_NAMESPACE, leader ?? '');

    expect((await ended(tenant, 'takeover')).status).toMatchObject({ phase: 'done', output: 'survived' });
    await createRun(tenant, 'worker', '/say new leader works', 'after-takeover');
    expect((await ended(tenant, 'after-takeover')).status?.phase).toBe('done');
  });

  test('an api pod is killed right after its 202: the run exists and ends', async () => {
    const agentId = tenant.agentId('worker');
    const { url } = await toolOk<{ url: string }>(tenant.apiKey, 'upsert_trigger', {
      agentId,
      name: 'Durable',
      body: '/say stored',
    });
    const [victim = ''] = await podsOf('api');
    const path = `/api/v1/namespaces/${RELEASE_NAMESPACE}/pods/${victim}:8080/proxy${new URL(url).pathname}`;
    const { runId } = JSON.parse(await kubectlOk(['create', '--raw', path, '-f', '-'], '{}')) as { runId: string };
    await kill(RELEASE_NAMESPACE, victim);

    expect((await ended(tenant, runId)).status).toMatchObject({ phase: 'done', output: 'stored' });
    await scaled('boxwright-api', 2);
  });

  test('all gateway pods are away when the work ends: the outcome arrives once they are back', async () => {
    await createRun(tenant, 'worker', '/shell sleep 30; echo worked\n/say arrived', 'gateway-away');
    const { status } = await claimed(tenant, 'gateway-away');
    await kubectlOk(['-n', RELEASE_NAMESPACE, 'scale', 'deployment/boxwright-gateway', '--replicas=0']);
    for (const pod of await podsOf('gateway')) await kill(RELEASE_NAMESPACE, pod);
    const logsOf = (container: string) =>
      kubectlOk(['logs', status?.claim?.podName ?? '', '-n', tenant.namespace, '-c', container]);
    await eventually('the work is done', async () => (await logsOf('tools')).includes('"tool call"'));
    await eventually('nobody takes it', async () => (await logsOf('runner')).includes('"the gateway did not serve"'));
    expect((await readRun(tenant, 'gateway-away'))?.status?.phase).toBe('running');
    await scaled('boxwright-gateway', 2);

    expect((await ended(tenant, 'gateway-away')).status).toMatchObject({ phase: 'done', output: 'arrived' });
    const run = await finishedRun(tenant.apiKey, tenant.agentId('worker'), 'gateway-away');
    expect(run.toolCalls).toHaveLength(1);
  });
});
