/** What breaks in production: each run ends, or waits, with the reason a person needs. Nothing is lost, nothing runs twice. */
import { jest } from '@jest/globals';
import { kill } from './support/control-plane.js';
import { eventually, getObject, kubectlOk } from './support/install.js';
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

  test('a run that names a lost one goes on with its session, and its answers are in one conversation', async () => {
    await createRun(tenant, 'worker', '/shell echo one > /dev/null\n/fail on purpose', 'lost');
    const lost = await ended(tenant, 'lost');
    expect(lost.status).toMatchObject({ phase: 'error', reason: 'ModelError', atRest: true });
    const manifest = {
      apiVersion: 'boxwright.dev/v1alpha1',
      kind: 'AgentRun',
      metadata: { name: 'goes-on', namespace: tenant.namespace },
      spec: { agent: 'worker', resume: 'lost', message: '/say went on' },
    };
    await kubectlOk(['create', '-f', '-'], JSON.stringify(manifest));

    expect((await ended(tenant, 'goes-on')).status).toMatchObject({ output: 'went on', sessionId: 's-lost' });
    const session = await toolOk<{ messages: { text: string }[] }>(tenant.apiKey, 'get_session', {
      agentId: tenant.agentId('worker'),
      sessionId: 's-lost',
    });
    expect(JSON.stringify(session)).toContain('on purpose');
    expect(JSON.stringify(session)).toContain('went on');
  });

  test('an agent with retries takes a run further whose model failed, once', async () => {
    await tenant.agent('stubborn', { retries: 1 });
    await createRun(tenant, 'stubborn', '/fail the first time', 'failed');
    const failed = await eventually('the run is taken further', async () => {
      const run = await readRun(tenant, 'failed');
      return run?.status?.retriedBy === undefined ? undefined : run;
    });
    expect(failed.status).toMatchObject({ phase: 'error', reason: 'ModelError' });

    const retry = await ended(tenant, failed.status?.retriedBy ?? '');
    expect(retry.status).toMatchObject({ phase: 'done' });
    expect(retry.spec).toMatchObject({ retryOf: { name: 'failed', attempt: 1 }, sessionId: 's-failed' });
    const record = await finishedRun(tenant.apiKey, tenant.agentId('stubborn'), retry.metadata.name);
    expect(record).toMatchObject({ status: 'done', retryOf: 'failed' });
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
