/**
 * Network rules of a Box namespace: nothing in, nothing out, except the pods of runs to the gateway and, when
 * the Box says so, to public addresses.
 * See docs/architecture.md#security.
 */
import { LABEL_BOX } from '../../api/labels.js';
import type { Box } from '../../api/v1alpha1/box.js';
import { SPECIAL_IPV4, SPECIAL_IPV6 } from '../../net/public-address.js';
import { GATEWAY_PORT } from '../../protocol/pod.js';
import { DEFAULT_DENY, DEFAULT_DENY_POLICY } from '../common/hardening.js';

export const GATEWAY_POLICY = 'boxwright-gateway';
export const INTERNET_POLICY = 'boxwright-internet';

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
    [DEFAULT_DENY_POLICY]: DEFAULT_DENY,
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
  const ipv4 = [...SPECIAL_IPV4, ...clusterCidrs.filter((cidr) => !isIpv6(cidr))];
  const ipv6 = [...SPECIAL_IPV6, ...clusterCidrs.filter(isIpv6)];
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
