/**
 * Network rules of a Box namespace (DESIGN 7): nothing in, nothing out, except the pods of runs to the gateway and, when
 * the Box says so, to public addresses.
 */
import { LABEL_BOX } from '../../api/labels.js';
import type { Box } from '../../api/v1alpha1/box.js';
import { GATEWAY_PORT } from '../../protocol/pod.js';

export const DEFAULT_DENY_POLICY = 'boxwright-default-deny';
export const GATEWAY_POLICY = 'boxwright-gateway';
export const INTERNET_POLICY = 'boxwright-internet';

/** Not public: private, carrier, link-local (metadata services), loopback, documentation, benchmark, multicast, reserved. */
export const BLOCKED_IPV4 = [
  '0.0.0.0/8',
  '10.0.0.0/8',
  '100.64.0.0/10',
  '127.0.0.0/8',
  '169.254.0.0/16',
  '172.16.0.0/12',
  '192.0.0.0/24',
  '192.168.0.0/16',
  '198.18.0.0/15',
  '224.0.0.0/4',
  '240.0.0.0/4',
];

/** The same for IPv6, with the ranges that carry IPv4 addresses inside (a way round the list above). */
export const BLOCKED_IPV6 = [
  '::/96',
  '64:ff9b::/96',
  '64:ff9b:1::/48',
  '2002::/16',
  'fc00::/7',
  'fe80::/10',
  'ff00::/8',
];

export interface NetworkSettings {
  /** Namespace and labels of the gateway's pods. */
  gateway: { namespace: string; podLabels: Readonly<Record<string, string>> };
  /** Pod, service and node ranges of the cluster where they are not private addresses. */
  clusterCidrs: readonly string[];
}

/** The pods of runs and of the network probe, which has to stand under the same rules. */
const OUR_PODS = { matchExpressions: [{ key: LABEL_BOX, operator: 'Exists' }] };
const namespaceNamed = (name: string) => ({ matchLabels: { 'kubernetes.io/metadata.name': name } });

/** Name -> spec of every policy that the Box should have; any other one of ours has to go. */
export function networkPolicySpecs(
  egress: Pick<Box['spec']['egress'], 'mode'>,
  settings: NetworkSettings,
): Record<string, Record<string, unknown>> {
  return {
    [DEFAULT_DENY_POLICY]: { podSelector: {}, policyTypes: ['Ingress', 'Egress'] },
    [GATEWAY_POLICY]: gatewayPolicy(settings.gateway),
    ...(egress.mode === 'internet' ? { [INTERNET_POLICY]: internetPolicy(settings.clusterCidrs) } : {}),
  };
}

function gatewayPolicy(gateway: NetworkSettings['gateway']): Record<string, unknown> {
  const peer = {
    namespaceSelector: namespaceNamed(gateway.namespace),
    podSelector: { matchLabels: { ...gateway.podLabels } },
  };
  return {
    podSelector: OUR_PODS,
    policyTypes: ['Egress'],
    egress: [{ to: [peer], ports: [{ protocol: 'TCP', port: GATEWAY_PORT }] }],
  };
}

function internetPolicy(clusterCidrs: readonly string[]): Record<string, unknown> {
  const isIpv6 = (cidr: string) => cidr.includes(':');
  const ipv4 = [...BLOCKED_IPV4, ...clusterCidrs.filter((cidr) => !isIpv6(cidr))];
  const ipv6 = [...BLOCKED_IPV6, ...clusterCidrs.filter(isIpv6)];
  const dns = {
    namespaceSelector: namespaceNamed('kube-system'),
    podSelector: { matchLabels: { 'k8s-app': 'kube-dns' } },
  };
  return {
    podSelector: OUR_PODS,
    policyTypes: ['Egress'],
    egress: [
      {
        to: [
          { ipBlock: { cidr: '0.0.0.0/0', except: [...new Set(ipv4)] } },
          { ipBlock: { cidr: '::/0', except: [...new Set(ipv6)] } },
        ],
      },
      {
        to: [dns],
        ports: [
          { protocol: 'UDP', port: 53 },
          { protocol: 'TCP', port: 53 },
        ],
      },
    ],
  };
}
