/**
 * The admission policies of the chart on a real API server. The user here has every right in the namespace: what is
 * refused is refused by a policy, not by a missing role.
 */
import { readFileSync } from 'node:fs';
import { AgentSpec } from '../../src/api/v1alpha1/agent.js';
import { APIKeyStatus } from '../../src/api/v1alpha1/api-key.js';
import { buildJob } from '../../src/controllers/agent-run/admission/job.js';
import { buildProbeJob } from '../../src/controllers/box/probe-job.js';
import { desiredNamespace as namespaceOfBox, desiredObjects } from '../../src/controllers/box/desired.js';
import { withPlatformPullSecrets } from '../../src/controllers/box/platform-pull-secrets.js';
import { desiredClaim } from '../../src/controllers/workspace-volume/claim.js';
import { desiredNamespace as namespaceOfWorkspace } from '../../src/controllers/workspace/desired.js';
import { makeBox, makeRun, makeWorkspace } from '../builders/run-objects.js';
import { findTools } from '../builders/kubectl.js';
import type { CommandResult } from '../builders/kubectl.js';
import { spawnApiServer } from '../builders/spawn-api-server.mjs';

const NAMESPACE = 'bw-policies';
const RELEASE = 'boxwright-system';

describe('admission policies', () => {
  // A server of its own: the policies would bind the other test files as well.
  let server: Awaited<ReturnType<typeof spawnApiServer>>;
  let kubectl: (args: readonly string[], input?: string) => Promise<CommandResult>;

  beforeAll(async () => {
    server = await spawnApiServer();
    const { kubeconfig } = server;
    const tools = await findTools();
    kubectl = (args, input) => tools.kubectl(kubeconfig, args, input);
    await ok(['apply', '-f', 'crds']);
    await ok(['wait', '--for=condition=Established', 'crd', '--all', '--timeout=30s']);
    const chart = await tools.helm([
      'template',
      'boxwright',
      'charts/boxwright',
      '-n',
      RELEASE,
      '--kube-version',
      '1.34.0',
      '--set',
      'publicUrl=http://localhost',
      '--set',
      'clusterCidrs={203.0.113.0/24,2001:db8:1::/48}',
      '--show-only',
      'templates/admission.yaml',
    ]);
    await ok(['apply', '-f', '-'], chart.stdout);
    await ok(
      ['apply', '-f', '-'],
      JSON.stringify({
        apiVersion: 'v1',
        kind: 'Namespace',
        metadata: { name: NAMESPACE, labels: { 'boxwright.dev/box': 'policies' } },
      }),
    );
    await ok([
      'create',
      'clusterrolebinding',
      'policies-mallory',
      '--clusterrole=cluster-admin',
      '--user=mallory',
      ...ours.map((name) => `--user=${name}`),
      '--user=system:serviceaccount:kube-system:job-controller',
      '--user=system:serviceaccount:kube-system:generic-garbage-collector',
      '--user=system:serviceaccount:kube-system:namespace-controller',
    ]);
    await ok(['create', '-f', '-', asController], JSON.stringify(objectsOf('policies').serviceAccount));
    await ok(
      ['create', '-f', '-', '--as=system:serviceaccount:kube-system:job-controller'],
      JSON.stringify(pod('run-pod')),
    );
    // A policy is enforced a moment after it was stored.
    await untilRefused(['run', 'probe', '--image=x', '--restart=Never', '--dry-run=server']);
  });

  afterAll(async () => {
    await server.stop();
  });

  const ours = ['api', 'gateway', 'controller', 'uninstall'].map(
    (name) => `system:serviceaccount:${RELEASE}:boxwright-${name}`,
  );
  const asController = `--as=system:serviceaccount:${RELEASE}:boxwright-controller`;
  const asApi = `--as=system:serviceaccount:${RELEASE}:boxwright-api`;

  const asGateway = `--as=system:serviceaccount:${RELEASE}:boxwright-gateway`;

  /** The Box of the namespace that the tests work in. */
  const ofPolicies = (spec = {}) => makeBox(spec, 'policies');

  const gatewayPods = { 'app.kubernetes.io/name': 'boxwright', 'app.kubernetes.io/component': 'gateway' };
  const network = {
    gateway: { namespace: RELEASE, podLabels: gatewayPods },
    clusterCidrs: ['203.0.113.0/24', '2001:db8:1::/48'],
  };

  /** Everything that the controller makes in the namespace of a Box, with its widest network rules. */
  const objectsOf = (name: string) =>
    desiredObjects(makeBox({ egress: { mode: 'internet' } }, name), { network, imagePullSecrets: ['registry'] });

  function makeJob(name: string, more: object = {}) {
    const run = makeRun(name, { metadata: { namespace: NAMESPACE } });
    const settings = {
      runnerImage: 'x',
      toolsImage: 'x',
      imagePullPolicy: 'IfNotPresent',
      gatewayIp: '10.96.0.7',
      gatewayServerName: 'g',
      gatewayCa: 'c',
    };
    return buildJob({ run, box: ofPolicies(), settings, ...more });
  }

  function pod(name: string) {
    return {
      apiVersion: 'v1',
      kind: 'Pod',
      metadata: { name, namespace: NAMESPACE, labels: { 'boxwright.dev/run': 'r' } },
      spec: { containers: [{ name: 'runner', image: 'x' }] },
    };
  }

  function run(name: string, spec: object) {
    return {
      apiVersion: 'boxwright.dev/v1alpha1',
      kind: 'AgentRun',
      metadata: { name, namespace: NAMESPACE, finalizers: ['boxwright.dev/fold'] },
      spec: { agent: 'a', message: 'x', ...spec },
    };
  }

  async function ok(args: string[], input?: string): Promise<void> {
    const result = await kubectl(args, input);
    if (!result.ok) throw new Error(`${args.join(' ')}: ${result.stderr}`);
  }

  async function untilRefused(args: string[]): Promise<void> {
    for (let i = 0; i < 100; i++) {
      if (!(await mallory(args)).ok) return;
      await new Promise((resolve) => setTimeout(resolve, 100));
    }
    throw new Error('the policies are not enforced');
  }

  function mallory(args: string[], input?: string) {
    return kubectl(['--as=mallory', '-n', NAMESPACE, ...args], input);
  }

  async function refused(message: string, args: string[], input?: object): Promise<void> {
    const result = await mallory(args, input === undefined ? undefined : JSON.stringify(input));
    expect({ args, ok: result.ok, stderr: result.stderr }).toEqual({
      args,
      ok: false,
      stderr: expect.stringContaining(message),
    });
  }

  test('run tokens are issued to nodes only', async () => {
    await refused('tokens of run pods are issued to nodes only', [
      'create',
      'token',
      'boxwright-runner',
      '--audience=boxwright-run',
    ]);
    await refused('long-lived service account tokens are not allowed', ['create', '-f', '-'], {
      apiVersion: 'v1',
      kind: 'Secret',
      type: 'kubernetes.io/service-account-token',
      metadata: {
        name: 'token',
        namespace: NAMESPACE,
        annotations: { 'kubernetes.io/service-account.name': 'boxwright-runner' },
      },
    });
  });

  test('pods come from the Job controller and Jobs from us', async () => {
    await refused('created by the Job controller only', ['create', '-f', '-'], pod('evil'));
    await refused('belong to the control plane', ['create', 'job', 'evil', '--image=x']);
    await refused('holds runs only', ['create', 'deployment', 'evil', '--image=x']);
    await refused('holds runs only', ['create', 'cronjob', 'evil', '--image=x', '--schedule=* * * * *']);
    const good = makeJob('good');
    await ok(['create', '-f', '-', asController], JSON.stringify(good));
    await refused('belong to the control plane', [
      'patch',
      'job',
      'good',
      '--type=merge',
      '-p',
      '{"spec":{"parallelism":2}}',
    ]);
    expect((await mallory(['delete', 'job', 'good', '--wait=false'])).ok).toBe(true);
  });

  test('a run pod cannot be changed, entered or debugged, but may be deleted and evicted', async () => {
    await refused('run pods cannot be changed', ['set', 'image', 'pod/run-pod', 'runner=evil']);
    await refused('run pods cannot be changed', ['label', 'pod', 'run-pod', 'boxwright.dev/run=other', '--overwrite']);
    const owner = { apiVersion: 'batch/v1', kind: 'Job', name: 'other', uid: 'u' };
    for (const metadata of [{ ownerReferences: [owner] }, { finalizers: ['x.example/hold'] }]) {
      const patch = ['patch', 'pod', 'run-pod', '--type=merge', '--dry-run=server', '-p', JSON.stringify({ metadata })];
      await refused('run pods cannot be changed', patch);
      await ok([...patch, '-n', NAMESPACE, '--as=system:serviceaccount:kube-system:generic-garbage-collector']);
    }
    await ok(['annotate', 'pod', 'run-pod', 'cni.example/ip=10.0.0.1', '-n', NAMESPACE, '--as=mallory']);
    await refused('exec, attach, resize and debug containers are not allowed', ['exec', 'run-pod', '--', 'id']);
    await refused('exec, attach, resize and debug containers are not allowed', ['attach', 'run-pod']);
    await refused('exec, attach, resize and debug containers are not allowed', ['debug', 'run-pod', '--image=x']);
    const forward = `/api/v1/namespaces/${NAMESPACE}/pods/run-pod/portforward`;
    await refused('port-forward and proxy are not allowed', ['create', '--raw', forward, '-f', '-'], {});
    for (const path of ['pods/run-pod', 'services/any']) {
      await refused('port-forward and proxy are not allowed', [
        'get',
        '--raw',
        `/api/v1/namespaces/${NAMESPACE}/${path}/proxy/`,
      ]);
    }
    const eviction = { apiVersion: 'policy/v1', kind: 'Eviction', metadata: { name: 'run-pod', namespace: NAMESPACE } };
    const path = `/api/v1/namespaces/${NAMESPACE}/pods/run-pod/eviction`;
    expect(await mallory(['create', '--raw', path, '-f', '-'], JSON.stringify(eviction))).toMatchObject({ ok: true });
  });

  test('network policies belong to the control plane; the garbage collector may remove them', async () => {
    const policy = {
      apiVersion: 'networking.k8s.io/v1',
      kind: 'NetworkPolicy',
      metadata: { name: 'boxwright-default-deny', namespace: NAMESPACE },
      spec: { podSelector: {}, policyTypes: ['Ingress', 'Egress'] },
    };
    await refused('belong to the control plane', ['create', '-f', '-'], {
      ...policy,
      metadata: { ...policy.metadata, name: 'open' },
    });
    await ok(['create', '-f', '-', asController], JSON.stringify(policy));
    await refused('belong to the control plane', [
      'patch',
      'networkpolicy',
      'boxwright-default-deny',
      '--type=merge',
      '-p',
      '{"spec":{"egress":[{}]}}',
    ]);
    await refused('belong to the control plane', ['delete', 'networkpolicy', 'boxwright-default-deny']);
    await ok([
      'delete',
      'networkpolicy',
      'boxwright-default-deny',
      '-n',
      NAMESPACE,
      '--as=system:serviceaccount:kube-system:generic-garbage-collector',
    ]);
  });

  test('the service account of run pods belongs to the control plane', async () => {
    const change = (metadata: object, more = {}) => [
      'patch',
      'serviceaccount',
      'boxwright-runner',
      '--type=merge',
      '-p',
      JSON.stringify({ metadata, ...more }),
    ];
    const role = { annotations: { 'eks.amazonaws.com/role-arn': 'arn:aws:iam::1:role/x' } };
    await refused('belongs to the control plane', change(role));
    await refused('belongs to the control plane', change({}, { imagePullSecrets: [{ name: 'mine' }] }));
    await refused('belongs to the control plane', change({}, { automountServiceAccountToken: true }));
    // OpenShift's controller gives every account a pull secret, and must not be told no for ever.
    const openshift = '--as=system:serviceaccount:openshift-infra:serviceaccount-pull-secrets-controller';
    await ok([
      'create',
      'clusterrolebinding',
      'openshift',
      '--clusterrole=cluster-admin',
      openshift.replace('--as', '--user'),
    ]);
    const name = 'boxwright-runner-dockercfg-x7k2p';
    const given = { annotations: { 'openshift.io/internal-registry-pull-secret-ref': name } };
    const asOpenshift = (args: string[]) => kubectl([...args, '-n', NAMESPACE, openshift]);
    expect(await asOpenshift(change(given, { imagePullSecrets: [{ name }] }))).toMatchObject({ ok: true });
    for (const more of [change(role), change({}, { automountServiceAccountToken: true })]) {
      expect(await asOpenshift(more)).toMatchObject({
        ok: false,
        stderr: expect.stringContaining('belongs to the control plane'),
      });
    }
    const account = objectsOf('policies').serviceAccount;
    const kept = withPlatformPullSecrets(account, {
      ...account,
      metadata: { ...account.metadata, ...given },
      imagePullSecrets: [{ name }],
    });
    expect(await kubectl(['replace', '-f', '-', asController], JSON.stringify(kept))).toMatchObject({ ok: true });
    await ok(['create', 'serviceaccount', 'robot', '-n', NAMESPACE, '--as=mallory']);
  });

  test('a run cannot take the name of the network probe', async () => {
    await refused('belongs to the network probe', ['create', '-f', '-'], run('boxwright-network-probe', {}));
  });

  test('who asked is noted by the control plane only; what it noted stays, and a backup can be restored', async () => {
    const agent = (name: string, by: string) => ({
      apiVersion: 'boxwright.dev/v1alpha1',
      kind: 'Agent',
      metadata: { name, namespace: NAMESPACE, annotations: { 'boxwright.dev/requested-by': by } },
      spec: { name: 'Noted' },
    });
    const editor = (args: string[], input?: object) =>
      kubectl(['--as=noting', '-n', NAMESPACE, ...args], input === undefined ? undefined : JSON.stringify(input));
    await ok(['create', 'clusterrole', 'noting', '--verb=create,get,update,patch', '--resource=agents.boxwright.dev']);
    await ok(['create', 'rolebinding', 'noting', '--clusterrole=noting', '--user=noting', '-n', NAMESPACE]);
    const forbidden = {
      ok: false,
      stderr: expect.stringContaining('requested-by is written by the control plane only'),
    };
    const annotate = (value: string) => ['annotate', 'agent', 'noted', '--overwrite', value];
    expect(await editor(['create', '-f', '-'], agent('forged', 'bw_somebody'))).toMatchObject(forbidden);
    expect(await mallory(['create', '-f', '-'], JSON.stringify(agent('restored', 'bw_old')))).toMatchObject({
      ok: true,
    });
    await ok(['create', '-f', '-', asApi], JSON.stringify(agent('noted', 'bw_first')));
    expect(await editor(annotate('boxwright.dev/requested-by=bw_somebody'))).toMatchObject(forbidden);
    expect(await mallory(annotate('boxwright.dev/requested-by=bw_somebody'))).toMatchObject(forbidden);
    expect(await editor(annotate('note=mine'))).toMatchObject({ ok: true });
    expect(await editor(annotate('boxwright.dev/requested-by-'))).toMatchObject({ ok: true });
    expect(await editor(annotate('boxwright.dev/requested-by=bw_first'))).toMatchObject(forbidden);
  });

  test.each([
    ['agentUid', 'u'],
    ['trigger', { origin: 'trigger', name: 't' }],
    ['sessionId', 's'],
    ['steer', true],
    ['sessionTitle', 't'],
    ['createdAt', '2026-01-01T00:00:00.000Z'],
    ['actor', 'somebody'],
    ['parent', { name: 'r', uid: 'u', depth: 1, agents: ['a'], waits: true }],
    ['model', { name: 'm' }],
  ])('spec.%s of a run is set by the control plane only', async (field, value) => {
    // Made by the first of these tests.
    await kubectl([
      'create',
      'role',
      'starter',
      '--verb=create',
      '--resource=agentruns.boxwright.dev',
      '-n',
      NAMESPACE,
    ]);
    await kubectl(['create', 'rolebinding', 'starter', '--role=starter', '--user=starter', '-n', NAMESPACE]);
    const create = (user: string, name: string) =>
      kubectl([`--as=${user}`, '-n', NAMESPACE, 'create', '-f', '-'], JSON.stringify(run(name, { [field]: value })));
    expect(await create('starter', 'forged')).toMatchObject({
      ok: false,
      stderr: expect.stringContaining('are set by the control plane only'),
    });
    // Whoever has all verbs has the verb restore too.
    expect(await create('mallory', `restored-${field.toLowerCase()}`)).toMatchObject({ ok: true });
    await ok(['create', '-f', '-', asApi], JSON.stringify(run(`made-${field.toLowerCase()}`, { [field]: value })));
  });

  test('a five-line run is welcome from anybody with the right', async () => {
    expect(await mallory(['create', '-f', '-'], JSON.stringify(run('by-mallory', {})))).toMatchObject({ ok: true });
    expect(
      await mallory(['patch', 'agentrun', 'by-mallory', '--type=merge', '-p', '{"spec":{"cancelRequested":true}}']),
    ).toMatchObject({ ok: true });
  });

  describe('nothing runs in the namespace of a Workspace', () => {
    const namespace = 'bw-ws-still';
    const policy = JSON.stringify({
      apiVersion: 'networking.k8s.io/v1',
      kind: 'NetworkPolicy',
      metadata: { name: 'boxwright-default-deny', namespace },
      spec: { podSelector: {}, policyTypes: ['Ingress', 'Egress'] },
    });
    const quota = ['create', 'quota', 'boxwright-quota', '--hard=pods=0', '-n', namespace];

    beforeAll(async () => {
      const labels = { 'boxwright.dev/workspace': 'still' };
      await ok(
        ['create', '-f', '-'],
        JSON.stringify({ apiVersion: 'v1', kind: 'Namespace', metadata: { name: namespace, labels } }),
      );
      await ok(['create', '-f', '-', asController], policy);
      await ok([...quota, asController]);
      await ok(['create', 'serviceaccount', 'robot', '-n', namespace]);
    });

    test.each([
      ['create', 'job', 'evil', '--image=x'],
      ['create', 'cronjob', 'evil', '--image=x', '--schedule=* * * * *'],
      ['create', 'deployment', 'evil', '--image=x'],
      ['create', 'service', 'externalname', 'evil', '--external-name=x'],
      ['create', 'token', 'robot'],
      ['get', '--raw', `/api/v1/namespaces/${namespace}/pods/any/proxy/`],
    ])('%s %s %s', async (...args) => {
      const result = await kubectl(['--as=mallory', '-n', namespace, ...args]);
      expect(result).toMatchObject({ ok: false, stderr: expect.stringContaining('nothing runs there') });
    });

    test('no pod, not even from the Job controller', async () => {
      const evil = { ...pod('evil'), metadata: { name: 'evil', namespace } };
      const result = await kubectl(
        ['create', '-f', '-', '--as=system:serviceaccount:kube-system:job-controller'],
        JSON.stringify(evil),
      );
      expect(result).toMatchObject({ ok: false, stderr: expect.stringContaining('nothing runs there') });
    });

    test('its guards stay, and its keys are written', async () => {
      for (const args of [
        ['delete', 'networkpolicy', 'boxwright-default-deny'],
        ['delete', 'quota', 'boxwright-quota'],
        ['patch', 'quota', 'boxwright-quota', '--type=merge', '-p', '{"spec":{"hard":{"pods":"9"}}}'],
      ]) {
        const result = await kubectl(['--as=mallory', '-n', namespace, ...args]);
        expect(result).toMatchObject({ ok: false, stderr: expect.stringContaining('belong to the control plane') });
      }
      await ok(['create', 'secret', 'generic', 'key', '--from-literal=key=x', '-n', namespace, asController]);
      for (const user of ['generic-garbage-collector', 'namespace-controller']) {
        const as = `--as=system:serviceaccount:kube-system:${user}`;
        await ok(['delete', 'networkpolicy', 'boxwright-default-deny', '--dry-run=server', '-n', namespace, as]);
      }
    });
  });

  test('a service account of kube-system is not trusted for its place', async () => {
    const create = (user: string) =>
      kubectl(['create', 'job', 'x', '--image=x', '--dry-run=server', '-n', NAMESPACE, `--as=${user}`]);
    for (const name of ['default', 'cloud-addon', 'job-controller-2']) {
      const user = `system:serviceaccount:kube-system:${name}`;
      await ok(['create', 'clusterrolebinding', name, '--clusterrole=cluster-admin', `--user=${user}`]);
      expect(await create(user)).toMatchObject({
        ok: false,
        stderr: expect.stringContaining('belong to the control plane'),
      });
    }
  });

  describe('our kinds', () => {
    const namespaceOf = (name: string, metadata: object) => ({
      apiVersion: 'v1',
      kind: 'Namespace',
      metadata: { name, ...metadata },
    });
    const agent = { kind: 'Agent', spec: { name: 'A' } };
    const aRun = { kind: 'AgentRun', spec: { agent: 'a', message: 'x' } };
    const note = { kind: 'AgentMemory', spec: { agent: 'a', text: 'x' } };
    const cases = [{ name: 'a', message: 'x', assertions: [{ contains: 'x' }] }];
    const evaluation = { kind: 'AgentEval', spec: { agent: 'a', cases } };
    const key = { kind: 'APIKey', spec: {} };
    const mark = (label: string) => ({ labels: { [label]: 'x' } });
    const adopted = { annotations: { 'boxwright.dev/adopt': 'x' } };

    test.each([
      ['plain', {}, agent, 'namespace of a Box'],
      ['plain', {}, aRun, 'namespace of a Box'],
      ['plain', {}, key, 'namespace of a Workspace'],
      ['foreign', mark('boxwright.dev/box'), aRun, 'namespace of a Box'],
      ['bw-unmade', {}, aRun, 'namespace of a Box'],
      ['bw-unmade', {}, note, 'namespace of a Box'],
      ['bw-unmade', {}, evaluation, 'namespace of a Box'],
      ['bw-ws-made', mark('boxwright.dev/workspace'), aRun, 'namespace of a Box'],
      ['bw-ws-made', mark('boxwright.dev/workspace'), agent, 'namespace of a Box'],
      ['bw-ws-made', mark('boxwright.dev/workspace'), note, 'namespace of a Box'],
      ['bw-made', mark('boxwright.dev/box'), key, 'namespace of a Workspace'],
      ['bw-made', mark('boxwright.dev/box'), aRun, undefined],
      ['bw-made', mark('boxwright.dev/box'), evaluation, undefined],
      ['bw-adopted', adopted, agent, undefined],
      ['bw-ws-made', mark('boxwright.dev/workspace'), key, undefined],
    ])('in namespace %s with %j: %j', async (name, metadata, { kind, spec }, message) => {
      await ok(['apply', '-f', '-'], JSON.stringify(namespaceOf(name, metadata)));
      const object = { apiVersion: 'boxwright.dev/v1alpha1', kind, metadata: { name: 'a', namespace: name }, spec };
      const args = ['--as=mallory', '-n', name, 'create', '--dry-run=server', '-f', '-'];
      const result = await kubectl(args, JSON.stringify(object));
      expect({ ...result, ok: result.ok }).toMatchObject(
        message === undefined ? { ok: true } : { ok: false, stderr: expect.stringContaining(message) },
      );
    });
  });

  test('our finalizers are removed by the controller and the uninstall hook only', async () => {
    await ok(['create', '-f', '-'], JSON.stringify(run('held', {})));
    const patch = ['patch', 'agentrun', 'held', '--type=merge', '-p', '{"metadata":{"finalizers":null}}'];
    await refused('finalizers of boxwright.dev are removed by the controller', patch);
    expect((await kubectl([...patch, '-n', NAMESPACE, asApi])).ok).toBe(false);
    await ok([...patch, '-n', NAMESPACE, `--as=system:serviceaccount:${RELEASE}:boxwright-uninstall`]);
  });

  test('a token of a trigger is given at creation by those who may restore, and then changed by the control plane only', async () => {
    const verbs = 'get,create,update,patch,delete';
    for (const [user, may] of [
      ['editor', verbs],
      ['restorer', `${verbs},restore`],
    ] as const) {
      await ok(['create', 'role', user, `--verb=${may}`, '--resource=agenttriggers.boxwright.dev', '-n', NAMESPACE]);
      await ok(['create', 'rolebinding', user, `--role=${user}`, `--user=${user}`, '-n', NAMESPACE]);
    }
    const create = (user: string, object: string) =>
      kubectl([`--as=${user}`, '-n', NAMESPACE, 'create', '-f', '-'], object);
    const trigger = {
      apiVersion: 'boxwright.dev/v1alpha1',
      kind: 'AgentTrigger',
      metadata: { name: 'a.restored', namespace: NAMESPACE },
      spec: { agent: 'a', name: 'Restored', body: '', tokenId: '0'.repeat(32), keyId: 'k1' },
    };
    expect(await mallory(['create', '-f', '-'], JSON.stringify(trigger))).toMatchObject({ ok: true });
    const rotate = (value: string) => [
      'patch',
      'agenttrigger',
      'a.restored',
      '--type=merge',
      '-p',
      `{"spec":{"tokenId":${value}}}`,
    ];
    const restored = JSON.stringify({ ...trigger, metadata: { ...trigger.metadata, name: 'a.revived' } });
    const { tokenId: _revoked, ...fresh } = trigger.spec;
    const unsigned = JSON.stringify({ ...trigger, metadata: { ...trigger.metadata, name: 'a.fresh' }, spec: fresh });
    expect(await create('editor', restored)).toMatchObject({
      ok: false,
      stderr: expect.stringContaining('a revoked URL cannot be revived'),
    });
    expect(await create('editor', unsigned)).toMatchObject({ ok: true });
    expect(await create('restorer', restored)).toMatchObject({ ok: true });

    await refused('changed by the control plane only', rotate(`"${'1'.repeat(32)}"`));
    await refused('changed by the control plane only', rotate('null'));
    expect(
      await mallory(['patch', 'agenttrigger', 'a.restored', '--type=merge', '-p', '{"spec":{"enabled":false}}']),
    ).toMatchObject({ ok: true });
    await ok([...rotate(`"${'2'.repeat(32)}"`), '-n', NAMESPACE, asApi]);
  });

  test('API pods write when a key was used, and nothing else of it', async () => {
    const namespace = 'bw-ws-keys';
    const labels = { 'boxwright.dev/workspace': 'keys' };
    for (const object of [
      { apiVersion: 'v1', kind: 'Namespace', metadata: { name: namespace, labels } },
      { apiVersion: 'boxwright.dev/v1alpha1', kind: 'APIKey', metadata: { name: 'k', namespace }, spec: {} },
    ]) {
      await ok(['create', '-f', '-'], JSON.stringify(object));
    }
    const write = (status: object, as: string) =>
      kubectl(
        `patch apikey k -n ${namespace} --subresource=status --type=merge ${as} -p`
          .split(' ')
          .concat(JSON.stringify({ status })),
      );
    const hash = 'a'.repeat(64);
    for (const first of [true, false]) {
      const lastUsedAt = `2026-01-01T00:0${first ? 1 : 2}:00.000Z`;
      expect(await write({ lastUsedAt }, asApi)).toMatchObject({ ok: true });
      for (const forged of [{ hash: 'b'.repeat(64) }, { prefix: 'bw_evil' }, { secretName: 'mine' }]) {
        expect(await write(forged, asApi)).toMatchObject({
          ok: false,
          stderr: expect.stringContaining('write status.lastUsedAt of an APIKey, and no other field'),
        });
      }
      if (first)
        expect(await write({ hash, prefix: 'bw_x', secretName: 'k' }, asController)).toMatchObject({ ok: true });
    }
    expect(await write({ hash: null }, asApi)).toMatchObject({ ok: false });
  });

  test('the gateway changes soul and MCP servers of an agent, notes who asked, and nothing else', async () => {
    const agent = {
      apiVersion: 'boxwright.dev/v1alpha1',
      kind: 'Agent',
      metadata: { name: 'self', namespace: NAMESPACE, labels: { team: 'a' }, annotations: { note: 'n' } },
      spec: { name: 'Self', budget: [{ per: 'month', usd: '1' }] },
    };
    await ok(['create', '-f', '-'], JSON.stringify(agent));
    const write = (body: object) =>
      kubectl(['patch', 'agent', 'self', '-n', NAMESPACE, '--type=merge', asGateway, '-p', JSON.stringify(body)]);
    const metadata = { annotations: { 'boxwright.dev/requested-by': 'run:r' } };
    expect(await write({ metadata, spec: { soul: 'better' } })).toMatchObject({ ok: true });
    expect(await write({ metadata, spec: { mcpServers: [{ name: 'm', url: 'https://mcp.example' }] } })).toMatchObject({
      ok: true,
    });
    for (const forged of [
      { spec: { budget: [] } },
      { spec: { description: 'better' } },
      { spec: { paused: true } },
      { spec: { model: 'dear' } },
      { metadata: { labels: { team: 'b' } } },
      { metadata: { finalizers: ['x.example/hold'] } },
      { metadata: { annotations: { note: 'm' } } },
      { metadata: { annotations: { note: null } } },
      { metadata: { annotations: { 'boxwright.dev/template': 'x' } } },
    ]) {
      const result = await write(forged);
      expect({ forged, ...result }).toMatchObject({ ok: false, stderr: expect.stringContaining('the gateway') });
    }
  });

  test('the policies name every field that API pods and gateway may not write', () => {
    const chart = readFileSync('charts/boxwright/templates/admission.yaml', 'utf8');
    const listed = [...chart.matchAll(/range \$field := list (.*?) }}/g)].map(([, list = '']) =>
      [...list.matchAll(/"(\w+)"/g)].map(([, name = '']) => name).sort(),
    );
    const without = (fields: object, ...free: string[]) =>
      Object.keys(fields)
        .filter((field) => !free.includes(field))
        .sort();
    expect(listed.slice(0, 2)).toEqual([
      without(APIKeyStatus.shape, 'lastUsedAt'),
      without(AgentSpec.shape, 'soul', 'mcpServers'),
    ]);
  });

  describe('the controller, although its rights are cluster-wide,', () => {
    const binding = (namespace: string, role: string, subject: string, kind = 'ClusterRole') => ({
      apiVersion: 'rbac.authorization.k8s.io/v1',
      kind: 'RoleBinding',
      metadata: { name: 'boxwright-test', namespace },
      roleRef: { apiGroup: 'rbac.authorization.k8s.io', kind, name: role },
      subjects: [{ kind: 'ServiceAccount', name: subject, namespace: RELEASE }],
    });
    const create = (object: object) => kubectl(['create', '-f', '-', asController], JSON.stringify(object));

    beforeAll(async () => {
      for (const name of ['bw-ws-policies', 'others']) await ok(['create', 'namespace', name]);
    });

    test.each([
      ['a role in a foreign namespace', binding('others', 'boxwright-workspace-secrets', 'boxwright-controller')],
      ['a role in kube-system', binding('kube-system', 'boxwright-box-credentials', 'boxwright-gateway')],
      ['another role', binding('bw-ws-policies', 'cluster-admin', 'boxwright-controller')],
      ['a Role of that name', binding(NAMESPACE, 'boxwright-box-credentials', 'boxwright-gateway', 'Role')],
      [
        'the right to write Secrets of a Box',
        binding(NAMESPACE, 'boxwright-workspace-secrets', 'boxwright-controller'),
      ],
      ['a role to somebody else', binding('bw-ws-policies', 'boxwright-workspace-secrets', 'mallory')],
      [
        'a role to a service account elsewhere',
        {
          ...binding(NAMESPACE, 'boxwright-box-credentials', 'boxwright-gateway'),
          subjects: [{ kind: 'ServiceAccount', name: 'boxwright-gateway', namespace: NAMESPACE }],
        },
      ],
    ])('cannot bind %s', async (_what, object) => {
      const result = await create(object);
      expect(result).toMatchObject({ ok: false, stderr: expect.stringContaining('boxwright-controller-reach') });
    });

    test.each([
      ['bw-ws-policies', 'boxwright-workspace-secrets', 'boxwright-controller'],
      [NAMESPACE, 'boxwright-box-credentials', 'boxwright-gateway'],
    ])('binds what it needs in %s', async (namespace, role, subject) => {
      expect(await create(binding(namespace, role, subject))).toMatchObject({ ok: true });
      await ok(['delete', 'rolebinding', 'boxwright-test', '-n', namespace, asController]);
    });

    test('cannot touch namespaces and objects of others, and does its own', async () => {
      for (const args of [
        ['delete', 'namespace', 'others'],
        ['create', 'namespace', 'stolen'],
        ['label', 'namespace', 'default', 'boxwright.dev/box=default'],
        ['create', 'serviceaccount', 'x', '-n', 'others'],
        ['create', 'job', 'x', '--image=x', '-n', 'others'],
        ['create', 'quota', 'x', '--hard=pods=0', '-n', 'kube-system'],
      ]) {
        const result = await kubectl([...args, asController]);
        expect({ args, ...result }).toMatchObject({ args, ok: false, stderr: expect.stringContaining('bw-') });
      }
      const own = { ...ofPolicies(), metadata: { name: 'own', uid: 'u' } };
      await ok(['create', '-f', '-', asController], JSON.stringify(namespaceOfBox(own)));
      const { serviceAccount, resourceQuota, limitRange, networkPolicies } = objectsOf('own');
      for (const object of [serviceAccount, resourceQuota, limitRange, ...networkPolicies]) {
        await ok(['create', '-f', '-', asController], JSON.stringify(object));
      }
    });

    test('makes the Jobs of runs and probes, and no others', async () => {
      const withClaim = { claimName: 'ada-workspace', hostUsers: false as const, previousRun: 'r' };
      const settings = { image: 'x', imagePullPolicy: 'Never', targets: [] };
      for (const job of [makeJob('ada-1'), makeJob('ada-2', withClaim), buildProbeJob(ofPolicies(), settings, 'd')]) {
        expect(await create(job)).toMatchObject({ ok: true });
      }
      const ttl = ['patch', 'job', 'ada-1', '-n', NAMESPACE, '--type=merge', asController, '-p'];
      await ok([...ttl, '{"spec":{"ttlSecondsAfterFinished":600}}']);
      expect(await kubectl([...ttl, '{"metadata":{"labels":{"boxwright.dev/run":"other"}}}'])).toMatchObject({
        ok: false,
        stderr: expect.stringContaining('neither the pod nor the labels'),
      });
    });

    type Forged = { metadata: object; spec: { template: { spec: object } } };
    const job = () => structuredClone(makeJob('forged')) as unknown as Forged;
    const withPod = (change: object) => {
      const forged = job();
      Object.assign(forged.spec.template.spec, change);
      return forged;
    };
    const runner = () => (makeJob('forged').spec.template.spec as { containers: object[] }).containers[0];
    const secret = { name: 'S', valueFrom: { secretKeyRef: { name: 's', key: 'k' } } };
    const ofOtherBox = { ...makeJob('forged').metadata.labels, 'boxwright.dev/box': 'other' };
    const other = [{ apiVersion: 'v1', kind: 'Pod', name: 'forged', uid: 'u', controller: true }];

    test.each<[string, () => object, string]>([
      ['another name', () => ({ ...job(), metadata: { ...job().metadata, name: 'else' } }), 'labels of its Box'],
      ['another Box', () => ({ ...job(), metadata: { ...job().metadata, labels: ofOtherBox } }), 'labels of its Box'],
      ['another owner', () => ({ ...job(), metadata: { ...job().metadata, ownerReferences: other } }), 'its AgentRun'],
      ['no owner', () => ({ ...job(), metadata: { ...job().metadata, ownerReferences: [] } }), 'its AgentRun'],
      ['two pods', () => ({ ...job(), spec: { ...job().spec, parallelism: 2, completions: 2 } }), 'one pod, once'],
      ['repetition', () => ({ ...job(), spec: { ...job().spec, backoffLimit: 3 } }), 'one pod, once'],
      ['another account', () => withPod({ serviceAccountName: 'robot' }), 'run as boxwright-runner'],
      ['a token', () => withPod({ automountServiceAccountToken: true }), 'run as boxwright-runner'],
      ['the network of the node', () => withPod({ hostNetwork: true }), 'run as boxwright-runner'],
      [
        'a Secret as volume',
        () => withPod({ volumes: [{ name: 'v', secret: { secretName: 's' } }] }),
        'run token only',
      ],
      [
        'the files of another agent',
        () => withPod({ volumes: [{ name: 'v', persistentVolumeClaim: { claimName: 'bob-workspace' } }] }),
        'the agent that it is labelled with',
      ],
      ['a path of the node', () => withPod({ volumes: [{ name: 'v', hostPath: { path: '/' } }] }), 'run token only'],
      ['a Secret as value', () => withPod({ containers: [{ ...runner(), env: [secret] }] }), 'no values from Secrets'],
      [
        'privileges',
        () => withPod({ containers: [{ ...runner(), securityContext: { privileged: true } }] }),
        'no privileges',
      ],
    ])('makes no Job with %s', async (_what, forge, message) => {
      const withoutMounts = JSON.parse(
        JSON.stringify(forge(), (key, value: unknown) => (key === 'volumeMounts' ? undefined : value)),
      ) as object;
      expect(await create(withoutMounts)).toMatchObject({ ok: false, stderr: expect.stringContaining(message) });
    });

    const policyNamed = (name: string, change: object) => {
      const found = objectsOf('policies').networkPolicies.find(({ metadata }) => metadata.name === name);
      return { ...found, spec: { ...found?.spec, ...change } };
    };
    const everywhere = [{ to: [{ ipBlock: { cidr: '0.0.0.0/0' } }] }];
    const without = (range: string) => {
      const text = JSON.stringify(
        objectsOf('policies').networkPolicies.find(({ metadata }) => metadata.name === 'boxwright-internet'),
      );
      return JSON.parse(text.replace(`"${range}",`, '').replace(`,"${range}"`, '')) as object;
    };
    const toGateway = (peer: object, port: unknown = 8443) => [{ to: [peer], ports: [{ protocol: 'TCP', port }] }];
    const release = { matchLabels: { 'kubernetes.io/metadata.name': RELEASE } };

    test.each<[string, () => object]>([
      [
        'of another name',
        () => ({ ...policyNamed('boxwright-internet', {}), metadata: { name: 'open', namespace: NAMESPACE } }),
      ],
      [
        'that denies some pods only',
        () => policyNamed('boxwright-default-deny', { podSelector: { matchLabels: { a: 'b' } } }),
      ],
      ['that denies one way only', () => policyNamed('boxwright-default-deny', { policyTypes: ['Ingress'] })],
      ['that denies nothing', () => policyNamed('boxwright-default-deny', { egress: [{}] })],
      ['that lets everybody in', () => policyNamed('boxwright-gateway', { policyTypes: ['Ingress'], ingress: [{}] })],
      ['to everywhere', () => policyNamed('boxwright-gateway', { egress: [{}] })],
      ['to all addresses', () => policyNamed('boxwright-internet', { egress: everywhere })],
      ['to all pods', () => policyNamed('boxwright-internet', { egress: [{ to: [{ podSelector: {} }] }] })],
      ['to a private range', () => without('169.254.0.0/16')],
      ['to a range of the cluster', () => without('203.0.113.0/24')],
      ['to a range of the cluster in IPv6', () => without('2001:db8:1::/48')],
      [
        'to other pods of the installation',
        () => policyNamed('boxwright-gateway', { egress: toGateway({ namespaceSelector: release, podSelector: {} }) }),
      ],
      [
        'to the gateway of another namespace',
        () => policyNamed('boxwright-gateway', { egress: toGateway({ podSelector: { matchLabels: gatewayPods } }) }),
      ],
      [
        'to another port',
        () =>
          policyNamed('boxwright-gateway', {
            egress: toGateway({ namespaceSelector: release, podSelector: { matchLabels: gatewayPods } }, 8081),
          }),
      ],
    ])('writes no network policy %s', async (_what, forge) => {
      expect(await create(forge())).toMatchObject({
        ok: false,
        stderr: expect.stringContaining('wider than it is made'),
      });
    });

    test('removes no network policy but the one that opens, unless it leaves an adopted namespace', async () => {
      const namespace = 'bw-leaving';
      await ok(['create', 'namespace', namespace]);
      await ok(['annotate', 'namespace', namespace, 'boxwright.dev/adopt=leaving']);
      for (const policy of objectsOf('leaving').networkPolicies)
        await ok(['create', '-f', '-', asController], JSON.stringify(policy));
      const remove = (name: string) => kubectl(['delete', 'networkpolicy', name, '-n', namespace, asController]);
      expect(await remove('boxwright-default-deny')).toMatchObject({ ok: true });
      await ok(['annotate', 'namespace', namespace, 'boxwright.dev/adopt-']);
      expect(await remove('boxwright-gateway')).toMatchObject({
        ok: false,
        stderr: expect.stringContaining('no other NetworkPolicy'),
      });
      expect(await remove('boxwright-internet')).toMatchObject({ ok: true });
    });

    test.each<[string, object]>([
      ['another name', { metadata: { name: 'robot', namespace: NAMESPACE } }],
      [
        'an identity in the cloud',
        {
          metadata: {
            name: 'boxwright-runner',
            namespace: NAMESPACE,
            annotations: { 'iam.gke.io/gcp-service-account': 'x' },
          },
        },
      ],
      ['a token in its pods', { automountServiceAccountToken: true }],
    ])('makes no service account with %s', async (_what, change) => {
      const forged = { ...objectsOf('policies').serviceAccount, ...change };
      expect(await kubectl(['apply', '-f', '-', asController], JSON.stringify(forged))).toMatchObject({
        ok: false,
        stderr: expect.stringContaining('makes the service account boxwright-runner'),
      });
    });

    test('makes empty volume claims of agents, and no others', async () => {
      const claim = (spec: object = {}, metadata: object = {}) => {
        const agent = { metadata: { name: 'ada', namespace: NAMESPACE, uid: 'u' } };
        const made = desiredClaim(agent, ofPolicies(), 'standard');
        return { ...made, spec: { ...made.spec, ...spec }, metadata: { ...made.metadata, ...metadata } };
      };
      for (const forged of [
        claim({ volumeName: 'pv-of-others' }),
        claim({ selector: { matchLabels: { a: 'b' } } }),
        claim({ dataSource: { kind: 'PersistentVolumeClaim', name: 'bob-workspace' } }),
        claim({}, { name: 'bob-workspace' }),
        claim({}, { ownerReferences: [] }),
      ]) {
        expect(await create(forged)).toMatchObject({
          ok: false,
          stderr: expect.stringContaining('makes empty volume claims'),
        });
      }
      expect(await create(claim())).toMatchObject({ ok: true });
    });

    test('changes no spec that people decide, and makes none of their objects', async () => {
      for (const [kind, spec, more] of [
        ['Workspace', {}, {}],
        ['Box', { workspace: 'own' }, {}],
        ['Agent', { name: 'A' }, { namespace: NAMESPACE }],
      ] as const) {
        const object = { apiVersion: 'boxwright.dev/v1alpha1', kind, metadata: { name: 'decided', ...more }, spec };
        const refusal = { ok: false, stderr: expect.stringContaining('nor changes their spec') };
        expect(await create(object)).toMatchObject(refusal);
        await ok(['create', '-f', '-'], JSON.stringify(object));
        const patch = (body: object) =>
          kubectl([
            'patch',
            kind,
            'decided',
            '-n',
            NAMESPACE,
            '--type=merge',
            asController,
            '-p',
            JSON.stringify(body),
          ]);
        const change = { Workspace: { displayName: 'x' }, Box: { egress: { mode: 'internet' } }, Agent: { soul: 'x' } }[
          kind
        ];
        expect({ kind, ...(await patch({ spec: change })) }).toMatchObject(refusal);
        expect(await patch({ metadata: { finalizers: ['boxwright.dev/cleanup'] } })).toMatchObject({
          ok: true,
          stderr: '',
        });
        expect(await patch({ metadata: { finalizers: null } })).toMatchObject({ ok: true });
      }
    });

    test('labels its namespaces as their names say, and lowers no Pod Security level', async () => {
      const workspace = { ...makeWorkspace(), metadata: { name: 'own', uid: 'u' } };
      await ok(['create', '-f', '-', asController], JSON.stringify(namespaceOfWorkspace(workspace)));
      const label = (name: string, ...labels: string[]) =>
        kubectl(['label', 'namespace', name, '--overwrite', ...labels, asController]);
      const enforce = 'pod-security.kubernetes.io/enforce';
      const refusals: [Promise<CommandResult>, string][] = [
        [kubectl(['create', 'namespace', 'bw-bare', asController]), 'named after'],
        [label('bw-ws-own', `${enforce}=privileged`), 'restricted and no other'],
        [label('bw-ws-own', `${enforce}-`), 'restricted and no other'],
        [label('bw-ws-own', `${enforce}-version=v1.0`), 'restricted and no other'],
        [label('bw-ws-own', 'boxwright.dev/workspace=other'), 'named after'],
        [label('bw-ws-own', 'boxwright.dev/workspace-'), 'named after'],
        [label('bw-ws-own', 'boxwright.dev/box=own'), 'named after'],
        [
          kubectl(['annotate', 'namespace', 'bw-ws-own', 'boxwright.dev/adopt=own', asController]),
          'allowed by administrators',
        ],
      ];
      for (const [result, message] of refusals) {
        expect(await result).toMatchObject({ ok: false, stderr: expect.stringContaining(message) });
      }
    });

    test('repairs the namespace of an older version, and takes and leaves one that it may adopt', async () => {
      const change = (name: string, metadata: object) =>
        ok(['patch', 'namespace', name, '--type=merge', '-p', JSON.stringify({ metadata }), asController]);
      for (const name of ['bw-ws-older', 'bw-taken']) await ok(['create', 'namespace', name]);
      await ok(['label', 'namespace', 'bw-ws-older', 'boxwright.dev/workspace=older']);
      await ok(['annotate', 'namespace', 'bw-taken', 'boxwright.dev/adopt=taken']);
      await change('bw-ws-older', { annotations: { note: 'by an older controller' } });
      await change('bw-ws-older', { labels: { 'pod-security.kubernetes.io/enforce': 'restricted' } });
      const labels = { 'boxwright.dev/box': 'taken', 'pod-security.kubernetes.io/enforce': 'restricted' };
      await change('bw-taken', { labels, annotations: { 'boxwright.dev/adopted-by-uid': 'u' } });
      await change('bw-taken', {
        labels: { 'boxwright.dev/box': null },
        annotations: { 'boxwright.dev/adopted-by-uid': null },
      });
    });

    test.each([
      ['bw-ws-policies', true],
      ['default', true],
      ['others', false],
      ['kube-system', false],
    ])('tells events in %s: %s', async (namespace, isAllowed) => {
      const result = await create({
        apiVersion: 'events.k8s.io/v1',
        kind: 'Event',
        metadata: { name: 'told', namespace },
        eventTime: '2026-01-01T00:00:00.000000Z',
        reportingController: 'boxwright.dev/controller',
        reportingInstance: 'controller-0',
        regarding: {
          apiVersion: 'boxwright.dev/v1alpha1',
          kind: 'Box',
          name: 'policies',
          ...(namespace === 'default' ? {} : { namespace }),
        },
        type: 'Normal',
        reason: 'Told',
        note: 'told',
        action: 'Tested',
      });
      expect(result).toMatchObject({ ok: isAllowed, stderr: isAllowed ? '' : expect.stringContaining('bw-') });
    });

    test('does not bind the hands of anybody else', async () => {
      await ok(['create', 'rolebinding', 'view', '--clusterrole=view', '--user=x', '-n', 'others', '--as=mallory']);
    });
  });
});
