/** Who may connect to the pods of the control plane, by the chart; and that a real API server takes the policies. */
import { stringify } from 'yaml';
import { PROBE_JOB, buildProbeJob } from '../../src/controllers/box/probe-job.js';
import { buildJob } from '../../src/controllers/agent-run/admission/job.js';
import { desiredNamespace as namespaceOfBox } from '../../src/controllers/box/desired.js';
import { desiredNamespace as namespaceOfWorkspace } from '../../src/controllers/workspace/desired.js';
import { renderChart } from '../builders/chart.js';
import { findTools } from '../builders/kubectl.js';
import { makeBox, makeRun, makeWorkspace } from '../builders/run-objects.js';
import { spawnApiServer } from '../builders/spawn-api-server.mjs';

type Labels = Record<string, string>;
interface Selector {
  matchLabels?: Labels;
  matchExpressions?: { key: string; operator: 'Exists' | 'DoesNotExist' | 'In'; values?: string[] }[];
}
interface Peer {
  namespaceSelector?: Selector;
  podSelector?: Selector;
}
interface Manifest {
  kind: string;
  metadata: { name: string; namespace: string };
  spec: {
    podSelector: Selector;
    policyTypes: string[];
    ingress: { from?: Peer[]; ports: { port: number }[] }[];
    egress?: unknown[];
    template: { metadata: { labels: Labels } };
  };
}
/** A pod that connects. */
interface Caller {
  namespace: Labels;
  labels: Labels;
}

const RELEASE = { 'kubernetes.io/metadata.name': 'bw-system' };
const inNamespace = (name: string, labels: Labels = {}) => ({ ...labels, 'kubernetes.io/metadata.name': name });

function selects({ matchLabels = {}, matchExpressions = [] }: Selector, labels: Labels): boolean {
  return (
    Object.entries(matchLabels).every(([key, value]) => labels[key] === value) &&
    matchExpressions.every(({ key, operator, values = [] }) =>
      operator === 'In' ? values.includes(labels[key] ?? '') : key in labels === (operator === 'Exists'),
    )
  );
}

/** As a network plugin that enforces policies decides it. */
function lets(policy: Manifest, port: number, caller: Caller): boolean {
  return policy.spec.ingress.some(
    ({ from, ports }) =>
      ports.some((one) => one.port === port) &&
      (from === undefined ||
        from.some(
          ({ namespaceSelector = { matchLabels: RELEASE }, podSelector = {} }) =>
            selects(namespaceSelector, caller.namespace) && selects(podSelector, caller.labels),
        )),
  );
}

const policies = (manifests: readonly Manifest[]) => manifests.filter(({ kind }) => kind === 'NetworkPolicy');
const rendered = new Map<string, Promise<Manifest[]>>();

/** Helm takes a second for each chart, so each is rendered once. */
function render(...values: string[]): Promise<Manifest[]> {
  const key = values.join();
  const manifests = rendered.get(key) ?? renderChart<Manifest>(values);
  rendered.set(key, manifests);
  return manifests;
}

async function policyOf(component: string, ...values: string[]): Promise<Manifest> {
  const found = policies(await render(...values)).find(({ metadata }) => metadata.name === `boxwright-${component}`);
  if (found === undefined) throw new Error(`no policy of ${component}`);
  return found;
}

async function podLabels(component: string): Promise<Labels> {
  const found = (await render()).find(
    ({ kind, metadata }) => kind === 'Deployment' && metadata.name === `boxwright-${component}`,
  );
  return found?.spec.template.metadata.labels ?? {};
}

const labelsOf = (job: { spec: { template: { metadata?: { labels?: Labels } } } }) =>
  job.spec.template.metadata?.labels ?? {};
const box = makeBox({}, 'dev');
const ofBox = inNamespace('bw-dev', namespaceOfBox(box).metadata.labels);
const settings = { image: 'x', imagePullPolicy: 'Never' };
const images = { imagePullPolicy: 'Never', runnerImage: 'x', toolsImage: 'y' };
const gateway = { gatewayIp: '10.0.0.1', gatewayServerName: 'g', gatewayCa: 'c' };
const runPod = labelsOf(buildJob({ run: makeRun('ada-1'), box, settings: { ...images, ...gateway } }));
const probePod = labelsOf(buildProbeJob(box, { ...settings, targets: [] }, PROBE_JOB));
const workspace = { ...makeWorkspace(), metadata: { name: 'acme', uid: 'u' } };
const ofWorkspace = inNamespace('bw-ws-acme', namespaceOfWorkspace(workspace).metadata.labels);

test('each policy is about the pods of its Deployment, and about no others', async () => {
  for (const component of ['api', 'gateway', 'controller']) {
    const { spec } = await policyOf(component);
    for (const other of ['api', 'gateway', 'controller']) {
      expect(selects(spec.podSelector, await podLabels(other))).toBe(other === component);
    }
    expect(spec.policyTypes).toEqual(['Ingress']);
    expect(spec.egress).toBeUndefined();
  }
});

test('API pods reach the gateway, and no other pods of the installation', async () => {
  const policy = await policyOf('gateway');
  expect(lets(policy, 8443, { namespace: RELEASE, labels: await podLabels('api') })).toBe(true);
  expect(lets(policy, 8443, { namespace: RELEASE, labels: await podLabels('controller') })).toBe(false);
  expect(lets(policy, 8443, { namespace: inNamespace('others'), labels: await podLabels('api') })).toBe(false);
});

test('runs reach the gateway, and nothing of a Box reaches the internal port', async () => {
  const policy = await policyOf('gateway');
  for (const labels of [runPod, probePod]) expect(lets(policy, 8443, { namespace: ofBox, labels })).toBe(true);
  expect(lets(policy, 8443, { namespace: ofBox, labels: {} })).toBe(false);
  expect(lets(policy, 8443, { namespace: inNamespace('others'), labels: runPod })).toBe(false);
  for (const component of ['api', 'gateway', 'controller']) {
    for (const namespace of [ofBox, ofWorkspace]) {
      expect(lets(await policyOf(component), 8081, { namespace, labels: runPod })).toBe(false);
    }
  }
});

test('the public port is open to all; API pods ask each other, whoever may read metrics', async () => {
  const policy = await policyOf('api', 'networkPolicy.metricsNamespaces={monitoring}');
  expect(lets(policy, 8080, { namespace: inNamespace('ingress-nginx'), labels: {} })).toBe(true);
  expect(lets(policy, 8081, { namespace: RELEASE, labels: await podLabels('api') })).toBe(true);
  expect(lets(policy, 8081, { namespace: RELEASE, labels: await podLabels('gateway') })).toBe(false);
  expect(lets(policy, 8443, { namespace: RELEASE, labels: {} })).toBe(false);
});

test.each([
  ['monitoring', true, true],
  ['others', true, false],
])('metrics for a pod in %s: %s, or by the value %s', async (name, byDefault, byValue) => {
  const caller = { namespace: inNamespace(name), labels: {} };
  for (const component of ['api', 'gateway', 'controller']) {
    expect(lets(await policyOf(component), 8081, caller)).toBe(byDefault);
    expect(lets(await policyOf(component, 'networkPolicy.metricsNamespaces={monitoring}'), 8081, caller)).toBe(byValue);
  }
});

test('rules for egress close it for that process alone, and API pods still ask each other and gateways', async () => {
  const rule = 'networkPolicy.egress.api[0].ports[0].port=443';
  const { spec } = await policyOf('api', rule);
  expect(spec.policyTypes).toEqual(['Ingress', 'Egress']);
  expect(spec.egress).toEqual([
    expect.objectContaining({ ports: [{ protocol: 'TCP', port: 8081 }] }),
    expect.objectContaining({ ports: [{ protocol: 'TCP', port: 8443 }] }),
    { ports: [{ port: 443 }] },
  ]);
  expect((await policyOf('gateway', rule)).spec.policyTypes).toEqual(['Ingress']);
});

test('there are none when they are turned off', async () => {
  expect(policies(await render('networkPolicy.enabled=false'))).toEqual([]);
});

test('a real API server takes them', async () => {
  const server = await spawnApiServer();
  try {
    const tools = await findTools();
    const text = policies(await render('networkPolicy.egress.api[0].ports[0].port=443')).map((one) => stringify(one));
    await tools.kubectl(server.kubeconfig, ['create', 'namespace', 'bw-system']);
    const args = ['create', '--validate=strict', '--dry-run=server', '-f', '-'];
    expect(await tools.kubectl(server.kubeconfig, args, text.join('---\n'))).toMatchObject({ ok: true, stderr: '' });
  } finally {
    await server.stop();
  }
});
