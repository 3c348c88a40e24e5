import type { Box } from '../../api/v1alpha1/box.js';
import { BoxSpec } from '../../api/v1alpha1/box.js';
import { desiredNamespace, desiredObjects, wrongAmounts } from './desired.js';
import type { NetworkSettings } from './network-policies.js';
import { networkPolicySpecs } from './network-policies.js';

const network: NetworkSettings = {
  gateway: { namespace: 'rel', podLabels: { 'app.kubernetes.io/component': 'gateway' } },
  clusterCidrs: ['203.0.113.0/24', '10.0.0.0/8', '2001:db8::/32'],
};

function makeBox(spec: object = {}): Box {
  return {
    apiVersion: 'boxwright.dev/v1alpha1',
    kind: 'Box',
    metadata: { name: 'dev', uid: 'uid-1' },
    spec: BoxSpec.parse({ workspace: 'acme', ...spec }),
  };
}

const ours = {
  'app.kubernetes.io/managed-by': 'boxwright',
  'boxwright.dev/box': 'dev',
  'boxwright.dev/workspace': 'acme',
};
const owner = { apiVersion: 'boxwright.dev/v1alpha1', kind: 'Box', name: 'dev', uid: 'uid-1', controller: true };
const OUR_PODS = { matchExpressions: [{ key: 'boxwright.dev/box', operator: 'Exists' }] };

test('the namespace is restricted and belongs to the Box', () => {
  expect(desiredNamespace(makeBox())).toEqual({
    apiVersion: 'v1',
    kind: 'Namespace',
    metadata: {
      name: 'bw-dev',
      labels: {
        ...ours,
        'pod-security.kubernetes.io/enforce': 'restricted',
        'pod-security.kubernetes.io/warn': 'restricted',
        'pod-security.kubernetes.io/audit': 'restricted',
      },
      ownerReferences: [owner],
    },
  });
});

test('the objects in it come from the spec', () => {
  const box = makeBox({ quota: { pods: 3, cpu: '2', memory: '4Gi' }, resources: { memory: '1Gi' } });
  const { serviceAccount, resourceQuota, limitRange, networkPolicies } = desiredObjects(box, {
    network,
    imagePullSecrets: ['default'],
  });
  const metadata = (name: string) => ({ name, namespace: 'bw-dev', labels: ours, ownerReferences: [owner] });
  expect(serviceAccount).toEqual({
    apiVersion: 'v1',
    kind: 'ServiceAccount',
    metadata: { ...metadata('boxwright-runner'), annotations: {} },
    automountServiceAccountToken: false,
    imagePullSecrets: [{ name: 'default' }],
  });
  expect(resourceQuota.spec.hard).toEqual({
    pods: '3',
    'limits.cpu': '2',
    'limits.memory': '4Gi',
    persistentvolumeclaims: '200',
    'requests.storage': '1Ti',
  });
  const amounts = { cpu: '1', memory: '1Gi', 'ephemeral-storage': '2Gi' };
  expect(limitRange.spec.limits).toEqual([{ type: 'Container', default: amounts, defaultRequest: amounts }]);
  expect(networkPolicies.map((policy) => policy.metadata)).toEqual([
    metadata('boxwright-default-deny'),
    metadata('boxwright-gateway'),
  ]);
});

test.each([
  [
    ['mine', 'other'],
    ['mine', 'other'],
  ],
  [[], []],
  [undefined, ['default']],
])('pull secrets %j of the Box are %j of its pods', (imagePullSecrets, expected) => {
  const { serviceAccount } = desiredObjects(makeBox({ imagePullSecrets }), { network, imagePullSecrets: ['default'] });
  expect(serviceAccount.imagePullSecrets).toEqual(expected.map((name) => ({ name })));
});

describe('network policies', () => {
  it('let nothing in and nothing out but to the gateway', () => {
    expect(networkPolicySpecs({ mode: 'none' }, network)).toEqual({
      'boxwright-default-deny': { podSelector: {}, policyTypes: ['Ingress', 'Egress'] },
      'boxwright-gateway': {
        podSelector: OUR_PODS,
        policyTypes: ['Egress'],
        egress: [
          {
            to: [
              {
                namespaceSelector: { matchLabels: { 'kubernetes.io/metadata.name': 'rel' } },
                podSelector: { matchLabels: { 'app.kubernetes.io/component': 'gateway' } },
              },
            ],
            ports: [{ protocol: 'TCP', port: 8443 }],
          },
        ],
      },
    });
  });

  it('let run pods reach public addresses and DNS in mode internet, and no private or special range', () => {
    const policy = networkPolicySpecs({ mode: 'internet' }, network)['boxwright-internet'] as {
      podSelector: unknown;
      egress: { to: { ipBlock?: { cidr: string; except: string[] } }[]; ports?: unknown }[];
    };
    expect(policy.podSelector).toEqual(OUR_PODS);
    expect(policy.egress[0]?.ports).toBeUndefined();
    const [ipv4, ipv6] = policy.egress[0]?.to.map(({ ipBlock }) => ipBlock) ?? [];
    expect(ipv4?.cidr).toBe('0.0.0.0/0');
    const blocked =
      '10.0.0.0/8 172.16.0.0/12 192.168.0.0/16 100.64.0.0/10 169.254.0.0/16 168.63.129.16/32 127.0.0.0/8 203.0.113.0/24';
    expect(ipv4?.except).toEqual(expect.arrayContaining(blocked.split(' ')));
    expect(ipv4?.except.filter((cidr) => cidr === '10.0.0.0/8')).toHaveLength(1);
    expect(ipv6?.cidr).toBe('::/0');
    expect(ipv6?.except).toEqual(expect.arrayContaining(['fc00::/7', 'fe80::/10', '64:ff9b::/96', '2001:db8::/32']));
    expect(ipv4?.except.some((cidr) => cidr.includes(':'))).toBe(false);
    expect(policy.egress[1]).toEqual({
      to: [
        {
          namespaceSelector: { matchLabels: { 'kubernetes.io/metadata.name': 'kube-system' } },
          podSelector: { matchLabels: { 'k8s-app': 'kube-dns' } },
        },
      ],
      ports: [
        { protocol: 'UDP', port: 53 },
        { protocol: 'TCP', port: 53 },
      ],
    });
  });
});

test.each([
  ['none', {}, []],
  ['a word', { quota: { memory: 'lots' } }, ['spec.quota.memory']],
  [
    'storage',
    { quota: { storage: 'much' }, workspaceVolume: { size: '5 GB' } },
    ['spec.quota.storage', 'spec.workspaceVolume.size'],
  ],
  [
    'zero and a negative one',
    { quota: { cpu: '0' }, resources: { cpu: '-1', runnerMemory: '0' } },
    ['spec.quota.cpu', 'spec.resources.cpu', 'spec.resources.runnerMemory'],
  ],
])('wrong amounts: %s', (_name, spec, fields) => {
  expect(wrongAmounts(makeBox(spec).spec)).toEqual(fields);
});
