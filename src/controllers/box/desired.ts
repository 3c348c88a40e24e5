/** Everything that stands in the namespace of a Box, as a pure function of Box and settings. */
import {
  GATEWAY_SERVICE_ACCOUNT,
  LABEL_BOX,
  LABEL_MANAGED_BY,
  LABEL_WORKSPACE,
  MANAGED_BY,
  RUNNER_SERVICE_ACCOUNT,
} from '../../api/labels.js';
import type { ObjectMeta } from '../../api/meta.js';
import { boxNamespace } from '../../api/names.js';
import { Boxes } from '../../api/v1alpha1/box.js';
import type { Box } from '../../api/v1alpha1/box.js';
import type {
  LimitRange,
  Namespace,
  NetworkPolicy,
  ResourceQuota,
  ServiceAccount,
  RoleBinding,
} from '../../kube/core-types.js';
import { controllerReference } from '../../kube/owner-references.js';
import { POD_SECURITY_LABELS, RESOURCE_QUOTA } from '../common/hardening.js';
import type { NamespaceOwner } from '../common/namespace.js';
import { parseQuantity } from '../common/quantity.js';
import { networkPolicySpecs } from './network-policies.js';
import type { NetworkSettings } from './network-policies.js';

export const LIMIT_RANGE = 'boxwright-defaults';
/**
 * The gateway reads the credentials of agents in Box namespaces and no Secret elsewhere: the chart ships this ClusterRole
 * (get of secrets) unbound, and lets the controller `bind` it, by this name only.
 */
export const BOX_CREDENTIALS_ROLE = 'boxwright-box-credentials';
export const CREDENTIALS_ROLE_BINDING = 'boxwright-gateway';

export interface BoxObjects {
  serviceAccount: ServiceAccount;
  networkPolicies: NetworkPolicy[];
  resourceQuota: ResourceQuota;
  limitRange: LimitRange;
  credentialsBinding: RoleBinding;
}

function boxLabels(box: Box): Record<string, string> {
  return {
    [LABEL_MANAGED_BY]: MANAGED_BY,
    [LABEL_BOX]: box.metadata.name,
    [LABEL_WORKSPACE]: box.spec.workspace,
  };
}

/** The hardened namespace, owned by the Box. */
export function desiredNamespace(box: Box): Namespace {
  return {
    apiVersion: 'v1',
    kind: 'Namespace',
    metadata: {
      name: boxNamespace(box.metadata.name),
      labels: { ...boxLabels(box), ...POD_SECURITY_LABELS },
      ownerReferences: [controllerReference(Boxes, box)],
    },
  };
}

/** Name and UID under which a Box owns its namespace. */
export function ownerOf(box: Box): NamespaceOwner {
  return { name: box.metadata.name, uid: box.metadata.uid ?? '', label: LABEL_BOX };
}

/** Labels that an adopted namespace loses again with its Box; the Pod Security level stays. */
export const LABELS_OF_ADOPTION = [LABEL_MANAGED_BY, LABEL_BOX, LABEL_WORKSPACE] as const;

/** What is the same for all Boxes of an installation. */
export interface BoxSettings {
  network: NetworkSettings;
  /** Pull secrets of Boxes that name none. */
  imagePullSecrets: readonly string[];
}

/** The objects inside the namespace. They carry an owner reference as a backstop only. */
export function desiredObjects(box: Box, settings: BoxSettings): BoxObjects {
  const metadata = (name: string): ObjectMeta => ({
    name,
    namespace: boxNamespace(box.metadata.name),
    labels: boxLabels(box),
    ownerReferences: [controllerReference(Boxes, box)],
  });
  const policies = Object.entries(networkPolicySpecs(box.spec.egress, settings.network));
  return {
    serviceAccount: {
      apiVersion: 'v1',
      kind: 'ServiceAccount',
      // Annotations of it can mean an identity in the cloud, which nobody gives to runs.
      metadata: { ...metadata(RUNNER_SERVICE_ACCOUNT), annotations: {} },
      automountServiceAccountToken: false,
      imagePullSecrets: (box.spec.imagePullSecrets ?? settings.imagePullSecrets).map((name) => ({ name })),
    },
    networkPolicies: policies.map(([name, spec]) => ({
      apiVersion: 'networking.k8s.io/v1',
      kind: 'NetworkPolicy',
      metadata: metadata(name),
      spec,
    })),
    resourceQuota: {
      apiVersion: 'v1',
      kind: 'ResourceQuota',
      metadata: metadata(RESOURCE_QUOTA),
      spec: { hard: quotaOf(box) },
    },
    limitRange: { apiVersion: 'v1', kind: 'LimitRange', metadata: metadata(LIMIT_RANGE), spec: limitsOf(box) },
    credentialsBinding: {
      apiVersion: 'rbac.authorization.k8s.io/v1',
      kind: 'RoleBinding',
      metadata: metadata(CREDENTIALS_ROLE_BINDING),
      roleRef: { apiGroup: 'rbac.authorization.k8s.io', kind: 'ClusterRole', name: BOX_CREDENTIALS_ROLE },
      subjects: [
        { kind: 'ServiceAccount', name: GATEWAY_SERVICE_ACCOUNT, namespace: settings.network.gateway.namespace },
      ],
    },
  };
}

/** The fields that hold no amount; the API server would refuse quota and limits with a message about other objects. */
export function wrongAmounts(spec: Pick<Box['spec'], 'quota' | 'resources' | 'workspaceVolume'>): string[] {
  const { quota, resources, workspaceVolume } = spec;
  const amounts = {
    'spec.quota.cpu': quota.cpu,
    'spec.quota.memory': quota.memory,
    'spec.quota.storage': quota.storage,
    'spec.workspaceVolume.size': workspaceVolume.size,
    'spec.resources.cpu': resources.cpu,
    'spec.resources.memory': resources.memory,
    'spec.resources.runnerMemory': resources.runnerMemory,
    'spec.resources.ephemeralStorage': resources.ephemeralStorage,
  };
  return Object.entries(amounts)
    .filter(([, text]) => !((parseQuantity(text) ?? 0) > 0))
    .map(([field]) => field);
}

function quotaOf(box: Box): Record<string, string> {
  const { pods, cpu, memory, volumes, storage } = box.spec.quota;
  return {
    pods: String(pods),
    'limits.cpu': cpu,
    'limits.memory': memory,
    persistentvolumeclaims: String(volumes),
    'requests.storage': storage,
  };
}

/** Without limits of its own a container would be refused by the quota. Run pods state all of theirs. */
function limitsOf(box: Box): { limits: Record<string, unknown>[] } {
  const { cpu, memory, ephemeralStorage } = box.spec.resources;
  const amounts = { cpu, memory, 'ephemeral-storage': ephemeralStorage };
  return { limits: [{ type: 'Container', default: amounts, defaultRequest: amounts }] };
}
