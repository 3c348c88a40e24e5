/**
 * Every way to hang or to vanish that a real cluster can be brought to, read as an operator reads it at
 * night: `kubectl get agentruns` names the reason, `kubectl describe` says what happened and what to do.
 */
import { jest } from '@jest/globals';
import { podsOf } from './support/control-plane.js';
import { apply, eventually, getObject, kubectl, kubectlOk, RELEASE_NAMESPACE } from './support/install.js';
import { freeze, someNode } from './support/node.js';
import { claimed, createRun, ended, requestCancel, withReason } from './support/runs.js';
import type { RunObject } from './support/runs.js';
import { createTenant } from './support/tenant.js';
import type { Tenant } from './support/tenant.js';

jest.setTimeout(900_000);

const RUNTIME_CLASS = 'boxwright-e2e-no-handler';

interface Held {
  metadata: { finalizers?: string[]; resourceVersion: string };
}

/** What kubectl shows of the run in its list and in its description. One that waits is tried now and then in between. */
async function expectShown(tenant: Tenant, run: RunObject, reason: string, parts: readonly string[]): Promise<void> {
  const { name } = run.metadata;
  for (const part of parts) expect(run.status?.message).toContain(part);
  await eventually(`kubectl shows ${reason} of run ${name} and what it means`, async () => {
    const list = await kubectlOk(['get', 'agentrun', name, '-n', tenant.namespace]);
    const description = (await kubectlOk(['describe', 'agentrun', name, '-n', tenant.namespace])).replace(/\s+/g, ' ');
    return list.includes(` ${reason} `) && parts.every((part) => description.includes(part));
  });
}

describe('a pod that does not come up', () => {
  let tenant: Tenant;

  beforeAll(async () => {
    tenant = await createTenant('e2e-detect-start');
    await tenant.agent('worker');
  });

  afterAll(async () => {
    await tenant.remove();
    await kubectl(['delete', 'runtimeclass', RUNTIME_CLASS, '--ignore-not-found']);
  });

  const change = (spec: object) =>
    kubectlOk(['patch', 'box', tenant.box, '--type=merge', '-p', JSON.stringify({ spec })]);

  /** Starts a run in a Box that is wrong in one way, and repairs the Box and cancels the run when it was looked at. */
  async function inBoxWith(spec: object, name: string, look: () => Promise<void>): Promise<void> {
    const cleared = Object.fromEntries(Object.keys(spec).map((field) => [field, null]));
    await change(spec);
    try {
      await createRun(tenant, 'worker', 'hello', name);
      await look();
    } finally {
      await change(cleared);
      await kubectl(['delete', 'agentrun', name, '-n', tenant.namespace, '--ignore-not-found']);
    }
  }

  test('because its runtime is not on the node ends as ContainerCreateFailed, with the words of the node', async () => {
    await apply({
      apiVersion: 'node.k8s.io/v1',
      kind: 'RuntimeClass',
      metadata: { name: RUNTIME_CLASS },
      handler: 'not-installed',
    });
    // Egress is not enforced here, so the probe, which has the same RuntimeClass, holds nobody back.
    // The node says within this time what is wrong; its words belong to the message.
    const bounds = { containerCreateSeconds: 15 };
    await inBoxWith({ runtimeClassName: RUNTIME_CLASS, bounds }, 'no-runtime', async () => {
      const run = await ended(tenant, 'no-runtime');
      expect(run.status?.phase).toBe('error');
      await expectShown(tenant, run, 'ContainerCreateFailed', [
        'Kubernetes says: FailedCreatePodSandBox',
        'not-installed',
        'kubectl describe pod shows what the node says',
      ]);
    });
  });

  test('with an image that is not of ours ends as ClaimTimeout', async () => {
    // The first process of every pod: it is on each node, and does nothing.
    const pause = (await someNode()).images.find((image) => image.includes('pause'));
    expect(pause).toBeDefined();
    await inBoxWith({ image: pause, bounds: { claimSeconds: 3 } }, 'no-claim', async () => {
      const run = await ended(tenant, 'no-claim');
      expect(run.status?.phase).toBe('error');
      await expectShown(tenant, run, 'ClaimTimeout', [
        'The runner started, but did not claim the run within 3 s.',
        'Check that pods of the Box reach the gateway',
      ]);
    });
  });

  test('because it is evicted before it could begin ends, and is not repeated', async () => {
    const pause = (await someNode()).images.find((image) => image.includes('pause'));
    await inBoxWith({ image: pause }, 'drained-early', async () => {
      const pod = await runningPod(tenant, 'drained-early');
      await evict(tenant, pod);
      const run = await ended(tenant, 'drained-early');
      await expectShown(tenant, run, 'Evicted', [
        'The pod was evicted, as when its node is drained.',
        'Continue its session, or start a new run.',
      ]);
    });
  });

  test('because of the quota waits as NoCapacity, with the words of the quota', async () => {
    const quota = async () => {
      const jsonpath = 'jsonpath={.status.hard.limits\\.cpu}';
      return await kubectlOk(['get', 'resourcequota', 'boxwright-quota', '-n', tenant.namespace, '-o', jsonpath]);
    };
    await change({ quota: { cpu: '100m' } });
    await eventually('the quota is in force', async () => (await quota()) === '100m');
    await createRun(tenant, 'worker', 'hello', 'no-quota');
    const run = await withReason(tenant, 'no-quota', 'NoCapacity');
    expect(run.status?.phase).toBe('running');
    await expectShown(tenant, run, 'NoCapacity', [
      'Nothing was executed.',
      'exceeded quota: boxwright-quota',
      'raise spec.quota of the Box; the run is tried again',
    ]);
  });
});

test('a pod that no node has the memory for waits as NoCapacity, with the words of the scheduler', async () => {
  const tenant = await createTenant('e2e-detect-room', {
    box: { resources: { memory: '2Ti' }, quota: { memory: '8Ti' }, bounds: { unschedulableSeconds: 3 } },
  });
  await tenant.agent('worker');
  await createRun(tenant, 'worker', 'hello', 'no-room');
  const run = await withReason(tenant, 'no-room', 'NoCapacity');
  await expectShown(tenant, run, 'NoCapacity', [
    'No node took the pod within 3 s.',
    'Insufficient memory',
    'Add nodes or raise',
  ]);
  await tenant.remove();
});

/** Name of the pod of a run, once its container `runner` runs. */
function runningPod(tenant: Tenant, run: string): Promise<string> {
  return eventually(`the pod of ${run} runs`, async () => {
    const args = ['get', 'pods', '-n', tenant.namespace, '-l', `boxwright.dev/run=${run}`, '-o', 'json'];
    const { items } = JSON.parse(await kubectlOk(args)) as {
      items: { metadata: { name: string }; status: { phase: string } }[];
    };
    return items.find(({ status }) => status.phase === 'Running')?.metadata.name;
  });
}

/** As `kubectl drain` does with each pod of a node. */
async function evict(tenant: Tenant, pod: string): Promise<void> {
  const path = `/api/v1/namespaces/${tenant.namespace}/pods/${pod}/eviction`;
  const eviction = {
    apiVersion: 'policy/v1',
    kind: 'Eviction',
    metadata: { name: pod, namespace: tenant.namespace },
  };
  await kubectlOk(['create', '--raw', path, '-f', '-'], JSON.stringify(eviction));
}

describe('a run that works', () => {
  let tenant: Tenant;

  beforeAll(async () => {
    tenant = await createTenant('e2e-detect-work', {
      box: { bounds: { heartbeatSeconds: 30, modelCallSeconds: 4, terminationSeconds: 4 } },
    });
    await tenant.agent('worker');
  });

  afterAll(async () => {
    await tenant.remove();
  });

  async function endedBy(name: string): Promise<number> {
    let sum = 0;
    for (const pod of await podsOf('controller')) {
      const path = `/api/v1/namespaces/${RELEASE_NAMESPACE}/pods/${pod}:8081/proxy/metrics`;
      const line = new RegExp(`^boxwright_runs_ended_total\\{[^}]*reason="${name}"[^}]*\\} (\\d+)`, 'm');
      sum += Number(line.exec(await kubectlOk(['get', '--raw', path]))?.[1] ?? 0);
    }
    return sum;
  }

  test('and falls silent ends as HeartbeatLost, and is counted', async () => {
    const before = await endedBy('HeartbeatLost');
    await createRun(tenant, 'worker', '/shell sleep 300', 'silent');
    const { status } = await claimed(tenant, 'silent');
    await freeze(tenant.namespace, status?.claim?.podName ?? '', 'runner');
    const run = await ended(tenant, 'silent');
    expect(run.status?.phase).toBe('error');
    await expectShown(tenant, run, 'HeartbeatLost', [
      'The run sent nothing for 30 seconds (spec.bounds.heartbeatSeconds of its Box).',
      'start a new run',
    ]);
    await eventually('the metric counts it', async () => (await endedBy('HeartbeatLost')) > before);
  });

  test('and waits for a model that does not answer ends as ModelError with the bound', async () => {
    await createRun(tenant, 'worker', '/wait 60s\n/say late', 'slow-model');
    const run = await ended(tenant, 'slow-model');
    expect(run.status?.phase).toBe('error');
    await expectShown(tenant, run, 'ModelError', [
      'did not finish its answer within 4 s (spec.bounds.modelCallSeconds of the Box)',
      'raise the bound',
    ]);
  });

  test('and does not stop when it is cancelled ends as Cancelled when its bound comes', async () => {
    // The other bound must not come first.
    const patient = JSON.stringify({ spec: { bounds: { heartbeatSeconds: 600 } } });
    await kubectlOk(['patch', 'box', tenant.box, '--type=merge', '-p', patient]);
    await createRun(tenant, 'worker', '/shell sleep 300', 'stubborn');
    const { status } = await claimed(tenant, 'stubborn');
    await freeze(tenant.namespace, status?.claim?.podName ?? '', 'runner');
    await requestCancel(tenant, 'stubborn');
    const run = await ended(tenant, 'stubborn');
    expect(run.status?.phase).toBe('cancelled');
    await expectShown(tenant, run, 'Cancelled', ['the runner did not stop by itself within 4 s']);
  });

  test('on a node that is drained ends with what happened to its pod, and is not repeated', async () => {
    await createRun(tenant, 'worker', '/shell sleep 300', 'drained');
    const { status } = await claimed(tenant, 'drained');
    await evict(tenant, status?.claim?.podName ?? '');
    const run = await ended(tenant, 'drained');
    expect(run.status?.phase).toBe('error');
    await expectShown(tenant, run, 'Evicted', [
      'The pod was evicted, as when its node is drained.',
      'or start a new run',
    ]);
    expect(run.status?.claim?.podUid).toBe(status?.claim?.podUid);
  });
});

test('runs in a namespace that is being deleted end as NamespaceTerminating, and nothing hangs', async () => {
  const tenant = await createTenant('e2e-detect-gone');
  await tenant.agent('worker', { paused: true });
  // Held by the test: it would be counted and gone before anybody could read it.
  await apply({
    apiVersion: 'boxwright.dev/v1alpha1',
    kind: 'AgentRun',
    metadata: { name: 'homeless', namespace: tenant.namespace, finalizers: ['example.com/e2e'] },
    spec: { agent: 'worker', message: 'hello' },
  });
  await withReason(tenant, 'homeless', 'AgentPaused');
  await kubectlOk(['delete', 'namespace', tenant.namespace, '--wait=false']);
  const run = await ended(tenant, 'homeless');
  expect(run.status?.phase).toBe('error');
  await expectShown(tenant, run, 'NamespaceTerminating', [
    'The namespace of the Box is being deleted',
    'Start a new run when the Box is Ready again',
  ]);
  const uid = await kubectlOk(['get', 'namespace', tenant.namespace, '-o', 'jsonpath={.metadata.uid}']);
  // The controller takes its own finalizer off at any time: the version says that nobody did in between.
  await eventually('the test lets go of the run', async () => {
    const held = await getObject<Held>('agentrun', 'homeless', tenant.namespace);
    const { finalizers = [], resourceVersion } = held?.metadata ?? {};
    const rest = finalizers.filter((name) => name !== 'example.com/e2e');
    const patch = JSON.stringify({ metadata: { resourceVersion, finalizers: rest } });
    await kubectlOk(['patch', 'agentrun', 'homeless', '-n', tenant.namespace, '--type=merge', '-p', patch]);
    return true;
  });
  await eventually('the namespace is gone, and made again for its Box', async () => {
    const namespace = await getObject<{ metadata: { uid: string } }>('namespace', tenant.namespace);
    return namespace !== undefined && namespace.metadata.uid !== uid;
  });
  await tenant.remove();
});
