/** What breaks in production: each run ends, or waits, with the reason a person needs. Nothing is lost, nothing runs twice. */
import { jest } from '@jest/globals';
import { kill, podsOf, scaled } from './support/control-plane.js';
import { eventually, getObject, kubectlOk, RELEASE_NAMESPACE } from './support/install.js';
import { finishedRun, toolOk } from './support/mcp.js';
import { claimed, createRun, ended, readRun, withReason } from './support/runs.js';
import { createTenant } from './support/tenant.js';
import type { Tenant } from './support/tenant.js';

jest.setTimeout(900_000);

describe('failures', () => {
  let tenant: Tenant;

  beforeAll(async () => {
    tenant = await createTenant('e2e-failures');
    await tenant.agent('worker');
  });

  afterAll(async () => {
    await scaled('boxwright-gateway', 2);
    await scaled('boxwright-controller', 2);
    await tenant.remove();
  });

  test('a run of an agent that does not exist ends at once, and kubectl describe says why', async () => {
    await createRun(tenant, 'nobody', 'hello', 'no-agent');
    expect((await ended(tenant, 'no-agent')).status).toMatchObject({ phase: 'error', reason: 'AgentNotFound' });
    expect(await getObject('job', 'no-agent', tenant.namespace)).toBeUndefined();
    await eventually('the event is there', async () => {
      const text = await kubectlOk(['describe', 'agentrun', 'no-agent', '-n', tenant.namespace]);
      return /Warning +AgentNotFound .* There is no Agent nobody /.test(text.split('\nEvents:')[1] ?? '');
    });
  });

  test('a pod that is killed ends its run with a reason, and nothing runs twice', async () => {
    await createRun(tenant, 'worker', '/shell sleep 120\n/say never', 'killed');
    const run = await claimed(tenant, 'killed');
    await kill(tenant.namespace, run.status?.claim?.podName ?? '');

    const over = await ended(tenant, 'killed');

    expect(over.status).toMatchObject({ phase: 'error', claim: { podUid: run.status?.claim?.podUid } });
    // A forced deletion still sends SIGTERM first: whether the runner could say so before it was gone is a race.
    expect(['PodDeleted', 'Interrupted']).toContain(over.status?.reason);
    const pods = await kubectlOk([
      'get',
      'pods',
      '-n',
      tenant.namespace,
      '-l',
      'boxwright.dev/run=killed',
      '-o',
      'jsonpath={.items[*].metadata.uid}',
    ]);
    expect(pods.split(' ').filter((uid) => uid !== '' && uid !== run.status?.claim?.podUid)).toEqual([]);
  });

  test('a Job that is deleted by hand ends its run with a reason', async () => {
    await createRun(tenant, 'worker', '/shell sleep 120', 'job-deleted');
    await claimed(tenant, 'job-deleted');
    await kubectlOk(['delete', 'job', 'job-deleted', '-n', tenant.namespace, '--wait=false']);
    const over = await ended(tenant, 'job-deleted');
    expect(over.status?.phase).toBe('error');
    expect(['JobDeleted', 'PodDeleted', 'Interrupted']).toContain(over.status?.reason);
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

  test('a run longer than its limit ends with DeadlineExceeded', async () => {
    const manifest = {
      apiVersion: 'boxwright.dev/v1alpha1',
      kind: 'AgentRun',
      metadata: { name: 'too-long', namespace: tenant.namespace },
      spec: { agent: 'worker', message: '/shell sleep 120', limits: { executionSeconds: 8 } },
    };
    await kubectlOk(['create', '-f', '-'], JSON.stringify(manifest));
    expect((await ended(tenant, 'too-long')).status).toMatchObject({ phase: 'error', reason: 'DeadlineExceeded' });
  });

  test('a model failure ends the run with ModelError', async () => {
    await createRun(tenant, 'worker', '/fail out of tokens', 'model-fails');
    const over = await ended(tenant, 'model-fails');
    expect(over.status).toMatchObject({ phase: 'error', reason: 'ModelError' });
    expect(over.status?.message).toContain('out of tokens');
  });

  test('a Box without an engine says what to configure', async () => {
    const bare = await createTenant('e2e-no-engine', { box: { engine: undefined } });
    await bare.agent('worker');
    await createRun(bare, 'worker', 'hello', 'no-engine');
    const over = await ended(bare, 'no-engine');
    expect(over.status).toMatchObject({ phase: 'error', reason: 'ModelNotConfigured' });
    expect(over.status?.message).toContain('spec.engine');
    await bare.remove();
  });

  test('an image that cannot be pulled ends the run with ImagePullFailed', async () => {
    const broken = await createTenant('e2e-no-image', {
      box: { image: 'localhost:1/none:none', bounds: { imagePullSeconds: 10 } },
    });
    await broken.agent('worker');
    await createRun(broken, 'worker', 'hello', 'no-image');
    const over = await ended(broken, 'no-image');
    expect(over.status).toMatchObject({ phase: 'error', reason: 'ImagePullFailed' });
    expect(over.status?.message).toContain('localhost:1/none:none');
    await broken.remove();
  });

  test('a run of an inactive agent waits with a reason and starts when a slot frees', async () => {
    const small = await createTenant('e2e-one-slot', { slots: 1 });
    await small.agent('first');
    await small.agent('second');
    await createRun(small, 'second', '/say at last', 'waits');
    const waiting = await withReason(small, 'waits', 'AgentInactive');
    expect(waiting.status?.phase).toBe('running');
    expect(await getObject('job', 'waits', small.namespace)).toBeUndefined();

    await kubectlOk(['delete', 'agent', 'first', '-n', small.namespace]);

    expect((await ended(small, 'waits')).status).toMatchObject({ phase: 'done', output: 'at last' });
    await small.remove();
  });
});
