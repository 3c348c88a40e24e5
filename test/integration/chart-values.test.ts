/** The values of the chart: what each does, what is refused, and that a real API server takes what comes out. */
import { cp, mkdtemp, readdir, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { runPodsSetting } from '../../src/controllers/run-pods.js';
import { renderChart } from '../builders/chart.js';
import { findTools } from '../builders/kubectl.js';
import { spawnApiServer } from '../builders/spawn-api-server.mjs';

interface PodTemplate {
  metadata: { labels: Record<string, string>; annotations: Record<string, string> };
  spec: Record<string, unknown> & {
    containers: { env: object[]; volumeMounts?: object[]; resources: { requests: { memory: string } } }[];
  };
}
interface Manifest {
  apiVersion: string;
  kind: string;
  metadata: { name: string; annotations?: Record<string, string> };
  spec: Record<string, unknown> & { template: PodTemplate };
}

const PROCESSES = ['api', 'gateway', 'controller'];
const RELEASES = 'test/golden/releases';

const find = (manifests: readonly Manifest[], kind: string, component: string) =>
  manifests.find((one) => one.kind === kind && one.metadata.name === `boxwright-${component}`);

/** Every value of one process that places or changes its pods. */
const placed = (process: string) =>
  [
    'nodeSelector.disk=ssd',
    'tolerations[0].key=dedicated',
    'tolerations[0].operator=Exists',
    'affinity.nodeAffinity.preferredDuringSchedulingIgnoredDuringExecution[0].weight=1',
    'affinity.nodeAffinity.preferredDuringSchedulingIgnoredDuringExecution[0].preference.matchExpressions[0].key=zone',
    'affinity.nodeAffinity.preferredDuringSchedulingIgnoredDuringExecution[0].preference.matchExpressions[0].operator=Exists',
    'topologySpreadConstraints[0].maxSkew=2',
    'topologySpreadConstraints[0].topologyKey=zone',
    'topologySpreadConstraints[0].whenUnsatisfiable=DoNotSchedule',
    'priorityClassName=high',
    'podAnnotations.note=yes',
    'podLabels.team=agents',
    'serviceAccount.annotations.role=arn',
    'extraEnv[0].name=HELLO',
    'extraEnv[0].value=world',
    'extraVolumes[0].name=more',
    'extraVolumes[0].emptyDir.sizeLimit=1Mi',
    'extraVolumeMounts[0].name=more',
    'extraVolumeMounts[0].mountPath=/more',
  ].map((value) => `${process}.${value}`);

const EVERYTHING = [
  ...PROCESSES.flatMap(placed),
  'api.autoscaling.enabled=true',
  'gateway.autoscaling.enabled=true',
  'api.service.type=LoadBalancer',
  'api.service.loadBalancerClass=example.com/internal',
  'api.service.annotations.scheme=internal',
  'api.ingress.enabled=true',
  'api.ingress.host=agents.example.com',
  'api.ingress.certManager.issuer=letsencrypt',
  'gateway.proxy.url=http://proxy.example.com:3128',
  'gateway.proxy.noProxy={.example.com}',
  'extraCaBundle.configMap=corporate-ca',
  'metrics.grafanaDashboard.enabled=true',
  'runs.nodeSelector.pool=agents',
];

test.each(PROCESSES)(
  'pods of the process %s run where its values say, with what they add, and no others do',
  async (component) => {
    const manifests = await renderChart<Manifest>(placed(component));
    const { metadata, spec } = find(manifests, 'Deployment', component)?.spec.template ?? ({} as PodTemplate);
    expect(spec).toMatchObject({
      nodeSelector: { disk: 'ssd' },
      tolerations: [{ key: 'dedicated', operator: 'Exists' }],
      affinity: { nodeAffinity: {} },
      topologySpreadConstraints: [
        { topologyKey: 'zone', labelSelector: { matchLabels: { 'app.kubernetes.io/component': component } } },
      ],
      priorityClassName: 'high',
    });
    expect(metadata.labels).toMatchObject({ team: 'agents', 'app.kubernetes.io/component': component });
    expect(metadata.annotations).toMatchObject({ note: 'yes', 'prometheus.io/port': '8081' });
    expect(spec.containers[0]?.env).toContainEqual({ name: 'HELLO', value: 'world' });
    expect(spec.containers[0]?.volumeMounts).toContainEqual({ name: 'more', mountPath: '/more' });
    expect(spec['volumes']).toContainEqual({ name: 'more', emptyDir: { sizeLimit: '1Mi' } });
    expect(find(manifests, 'ServiceAccount', component)?.metadata.annotations).toEqual({ role: 'arn' });
    for (const other of PROCESSES.filter((one) => one !== component)) {
      expect(JSON.stringify(find(manifests, 'Deployment', other))).not.toMatch(/dedicated|HELLO|"team"|"zone"/);
    }
  },
);

test('labels that select pods are not for the values to change', async () => {
  const values = ['api.podLabels.app\\.kubernetes\\.io/component=other'];
  const deployment = find(await renderChart<Manifest>(values), 'Deployment', 'api');
  expect(deployment?.spec.template.metadata.labels['app.kubernetes.io/component']).toBe('api');
});

test('an autoscaler takes the place of the number of pods', async () => {
  const manifests = await renderChart<Manifest>(['api.autoscaling.enabled=true', 'api.autoscaling.maxReplicas=9']);
  expect(find(manifests, 'Deployment', 'api')?.spec).not.toHaveProperty('replicas');
  expect(find(manifests, 'Deployment', 'gateway')?.spec).toHaveProperty('replicas', 2);
  const scalers = manifests.filter(({ kind }) => kind === 'HorizontalPodAutoscaler');
  expect(scalers.map(({ metadata, spec }) => [metadata.name, spec['minReplicas'], spec['maxReplicas']])).toEqual([
    ['boxwright-api', 2, 9],
  ]);
});

test('the Service of the API takes annotations, and a class where it is a load balancer', async () => {
  const values = ['api.service.loadBalancerClass=example.com/x', 'api.service.annotations.scheme=internal'];
  const inside = find(await renderChart<Manifest>(values), 'Service', 'api');
  expect(inside?.metadata.annotations).toEqual({ scheme: 'internal' });
  expect(inside?.spec).not.toHaveProperty('loadBalancerClass');
  const outside = find(await renderChart<Manifest>([...values, 'api.service.type=LoadBalancer']), 'Service', 'api');
  expect(outside?.spec).toHaveProperty('loadBalancerClass', 'example.com/x');
});

const byKind = (manifests: readonly Manifest[], kind: string) => manifests.filter((one) => one.kind === kind);
const INGRESS = ['api.ingress.enabled=true', 'api.ingress.host=agents.example.com'];
const NO_LOG = 'nginx.ingress.kubernetes.io/enable-access-log';

test('trigger URLs have an Ingress of their own, which writes no access log', async () => {
  const shape = async (...values: string[]) =>
    byKind(await renderChart<Manifest>([...INGRESS, ...values]), 'Ingress').map(({ metadata, spec }) => {
      const { rules, tls } = spec as unknown as {
        rules: { host: string; http: { paths: { path: string }[] } }[];
        tls?: { secretName: string }[];
      };
      const paths = rules.flatMap(({ http }) => http.paths.map(({ path }) => path));
      const { annotations = {} } = metadata;
      const issuer = annotations['cert-manager.io/cluster-issuer'] ?? annotations['cert-manager.io/issuer'];
      return [metadata.name, paths.join(), annotations[NO_LOG], tls?.[0]?.secretName, issuer];
    });
  expect(await shape()).toEqual([
    ['boxwright-api', '/api/', undefined, undefined, undefined],
    ['boxwright-api-triggers', '/api/t/', 'false', undefined, undefined],
  ]);
  expect(await shape('api.ingress.triggers.enabled=false')).toHaveLength(1);
  // One of the two asks for the certificate, and both use it.
  expect(await shape('api.ingress.certManager.issuer=le')).toEqual([
    ['boxwright-api', '/api/', undefined, 'boxwright-api-tls', 'le'],
    ['boxwright-api-triggers', '/api/t/', 'false', 'boxwright-api-tls', undefined],
  ]);
  const own = [
    'api.ingress.certManager.issuer=le',
    'api.ingress.certManager.kind=Issuer',
    'api.ingress.tlsSecretName=own',
  ];
  expect((await shape(...own))[0]).toEqual(['boxwright-api', '/api/', undefined, 'own', 'le']);
});

test('an HTTPRoute of the Gateway API leads to the Service and waits as long as send_message does', async () => {
  const enabled = ['api.httpRoute.enabled=true'];
  await expect(renderChart(enabled)).rejects.toThrow('api.httpRoute.parentRefs is required');
  const parent = ['api.httpRoute.parentRefs[0].name=public', 'api.httpRoute.parentRefs[0].namespace=gateways'];
  const values = [...enabled, ...parent, 'publicUrl=https://agents.example.com:8443'];
  const [route] = byKind(await renderChart<Manifest>(values), 'HTTPRoute');
  expect(route).toMatchObject({
    apiVersion: 'gateway.networking.k8s.io/v1',
    spec: {
      parentRefs: [{ name: 'public', namespace: 'gateways' }],
      hostnames: ['agents.example.com'],
      rules: [
        {
          matches: [{ path: { type: 'PathPrefix', value: '/api' } }],
          timeouts: { request: '660s', backendRequest: '660s' },
          backendRefs: [{ name: 'boxwright-api', port: 80 }],
        },
      ],
    },
  });
  // Callers may use the further names that it has.
  const named = await renderChart<Manifest>([...values, 'api.httpRoute.hostnames={other.example.com}']);
  expect(find(named, 'Deployment', 'api')?.spec.template.spec.containers[0]?.env).toContainEqual({
    name: 'BOXWRIGHT_ALLOWED_HOSTS',
    value: 'other.example.com',
  });
});

test('every process trusts the further authorities, and the gateway alone gets the proxy', async () => {
  const ca = { name: 'NODE_EXTRA_CA_CERTS', value: '/etc/boxwright/ca/bundle.crt' };
  const proxy = { name: 'BOXWRIGHT_HTTPS_PROXY', value: 'http://proxy.example.com:3128' };
  const manifests = await renderChart<Manifest>(EVERYTHING);
  for (const component of PROCESSES) {
    const pod = find(manifests, 'Deployment', component)?.spec.template.spec;
    expect(pod?.containers[0]?.env).toContainEqual(ca);
    expect(pod?.containers[0]?.volumeMounts).toContainEqual({
      name: 'extra-ca',
      mountPath: '/etc/boxwright/ca',
      readOnly: true,
    });
    expect(pod?.['volumes']).toContainEqual({
      name: 'extra-ca',
      configMap: { name: 'corporate-ca', items: [{ key: 'ca.crt', path: 'bundle.crt' }] },
    });
    expect(pod?.containers[0]?.env.some((one) => JSON.stringify(one) === JSON.stringify(proxy))).toBe(
      component === 'gateway',
    );
  }
  expect(JSON.stringify(await renderChart([]))).not.toMatch(/NODE_EXTRA_CA_CERTS|HTTPS_PROXY/);
});

test('the controller gets what run pods have besides; labels of ours are refused', async () => {
  const env = find(await renderChart<Manifest>(['runs.priorityClassName=low']), 'Deployment', 'controller')?.spec
    .template.spec.containers[0]?.env as { name: string; value: string }[];
  const setting = env.find(({ name }) => name === 'BOXWRIGHT_RUN_PODS')?.value;
  expect(runPodsSetting.parse(setting)).toMatchObject({
    annotations: { 'cluster-autoscaler.kubernetes.io/safe-to-evict': 'false' },
    priorityClassName: 'low',
  });
  await expect(renderChart(['runs.labels.boxwright\\.dev/run=x'])).rejects.toThrow(
    'written by the control plane alone',
  );
});

test('helm test runs a pod without a token, at the port of the Service', async () => {
  const [pod] = byKind(await renderChart<Manifest>(['api.service.port=8000']), 'Pod');
  expect(pod?.metadata.annotations).toMatchObject({ 'helm.sh/hook': 'test' });
  expect(pod?.spec).toMatchObject({ automountServiceAccountToken: false, restartPolicy: 'Never' });
  const [container] = (pod?.spec['containers'] ?? []) as { args: string[]; env: { name: string; value: string }[] }[];
  expect(container?.args).toEqual(['smoke-test']);
  expect(container?.env[0]?.value).toBe('http://boxwright-api.bw-system.svc:8000');
});

test.each([
  ['clusterCidrs={notacidr}', '/clusterCidrs/0'],
  ['clusterCidrs={10.0.0.0/33}', '/clusterCidrs/0'],
  ['clusterCidrs={10.0.0.300/8}', '/clusterCidrs/0'],
  ['clusterCidrs={fd00::/129}', '/clusterCidrs/0'],
  ["admission.podCreators={it's}", '/admission/podCreators/0'],
  ["admission.systemUserPrefixes={a' || true || '}", '/admission/systemUserPrefixes/0'],
  ['api.nodeSelectors.disk=ssd', "additional properties 'nodeSelectors' not allowed"],
])('%s is refused by the schema', async (value, place) => {
  await expect(renderChart([value])).rejects.toThrow(place);
});

test.each(['10.0.0.0/8', '0.0.0.0/0', 'fd00::/8', '::/0', '2001:db8::1/64'])('%s is a range', async (range) => {
  await expect(renderChart([`clusterCidrs={${range}}`])).resolves.toBeDefined();
});

test('the values of every earlier release are enough for the chart, as helm upgrade --reuse-values brings them', async () => {
  const releases = (await readdir(RELEASES, { withFileTypes: true })).filter((one) => one.isDirectory());
  expect(releases.length).toBeGreaterThan(0);
  const folder = await mkdtemp(join(tmpdir(), 'boxwright-chart-'));
  try {
    const tools = await findTools();
    const render = async (chart: string, ...more: string[]) => {
      const args = ['template', 'boxwright', chart, '-n', 'bw-system', '--kube-version', '1.34.0', '--set'];
      return tools.helm([...args, 'publicUrl=http://x', ...more]);
    };
    for (const { name } of releases) {
      const chart = join(folder, name);
      await cp('charts/boxwright', chart, { recursive: true });
      await cp(join(RELEASES, name, 'values.yaml'), join(chart, 'values.yaml'));
      const values = ['--values', join(RELEASES, name, 'values.yaml')];
      // What is missing in them is as in a chart with all of its values.
      expect(await render(chart)).toEqual(await render('charts/boxwright', ...values));
      expect(await render(chart)).toMatchObject({ ok: true, stderr: '' });
    }
  } finally {
    await rm(folder, { recursive: true, force: true });
  }
});

describe('on a real API server', () => {
  let server: Awaited<ReturnType<typeof spawnApiServer>>;
  let tools: Awaited<ReturnType<typeof findTools>>;

  beforeAll(async () => {
    server = await spawnApiServer();
    tools = await findTools();
  }, 300_000);

  afterAll(() => server.stop());

  const helm = (...args: string[]) =>
    tools.helm(['--kubeconfig', server.kubeconfig, ...args, '--create-namespace', '--set', 'publicUrl=http://x']);

  test('all values at once make objects that it takes', async () => {
    await tools.kubectl(server.kubeconfig, ['create', 'namespace', 'bw-system']);
    const items = await renderChart<Manifest>(EVERYTHING);
    const text = JSON.stringify({ apiVersion: 'v1', kind: 'List', items });
    const args = ['create', '--validate=strict', '--dry-run=server', '-f', '-'];
    expect(await tools.kubectl(server.kubeconfig, args, text)).toMatchObject({ ok: true, stderr: '' });
  });

  test('a second installation is refused before anything is written, and the first one can be upgraded', async () => {
    expect(await helm('install', 'first', 'charts/boxwright', '-n', 'one')).toMatchObject({ ok: true });
    for (const [name, namespace] of [
      ['second', 'two'],
      ['first', 'two'],
      ['second', 'one'],
    ]) {
      const refused = await helm('install', String(name), 'charts/boxwright', '-n', String(namespace));
      expect(refused.ok).toBe(false);
      expect(refused.stderr).toContain('release first in namespace one');
    }
    expect((await tools.kubectl(server.kubeconfig, ['get', 'all', '-n', 'two', '-o', 'name'])).stdout).toBe('');
    const upgraded = await helm('upgrade', '--install', 'first', 'charts/boxwright', '-n', 'one');
    expect(upgraded).toMatchObject({ ok: true });
  }, 300_000);
});
