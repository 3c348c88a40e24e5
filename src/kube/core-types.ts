/** The built-in kinds that we touch, with only the fields that we use. */
import type { KubeObject, ObjectMeta, ResourceType } from '../api/meta.js';

export interface Namespace extends KubeObject {
  spec?: Record<string, unknown>;
  status?: { phase?: 'Active' | 'Terminating' };
}
export const Namespaces: ResourceType<Namespace> = {
  group: '',
  version: 'v1',
  kind: 'Namespace',
  plural: 'namespaces',
  namespaced: false,
};

export interface Secret extends KubeObject {
  type?: string;
  immutable?: boolean;
  /** base64 */
  data?: Record<string, string>;
  stringData?: Record<string, string>;
}
export const Secrets: ResourceType<Secret> = {
  group: '',
  version: 'v1',
  kind: 'Secret',
  plural: 'secrets',
  namespaced: true,
};

export interface ConfigMap extends KubeObject {
  data?: Record<string, string>;
  /** base64 */
  binaryData?: Record<string, string>;
}
export const ConfigMaps: ResourceType<ConfigMap> = {
  group: '',
  version: 'v1',
  kind: 'ConfigMap',
  plural: 'configmaps',
  namespaced: true,
};

export interface Service extends KubeObject {
  spec?: { clusterIP?: string; ports?: { name?: string; port: number; nodePort?: number }[] };
}
export const Services: ResourceType<Service> = {
  group: '',
  version: 'v1',
  kind: 'Service',
  plural: 'services',
  namespaced: true,
};

export interface ServiceAccount extends KubeObject {
  automountServiceAccountToken?: boolean;
  imagePullSecrets?: { name: string }[];
}
export const ServiceAccounts: ResourceType<ServiceAccount> = {
  group: '',
  version: 'v1',
  kind: 'ServiceAccount',
  plural: 'serviceaccounts',
  namespaced: true,
};

export interface ResourceQuota extends KubeObject {
  spec: { hard: Record<string, string> };
}
export const ResourceQuotas: ResourceType<ResourceQuota> = {
  group: '',
  version: 'v1',
  kind: 'ResourceQuota',
  plural: 'resourcequotas',
  namespaced: true,
};

export interface LimitRange extends KubeObject {
  spec: { limits: Record<string, unknown>[] };
}
export const LimitRanges: ResourceType<LimitRange> = {
  group: '',
  version: 'v1',
  kind: 'LimitRange',
  plural: 'limitranges',
  namespaced: true,
};

export interface NetworkPolicy extends KubeObject {
  spec: Record<string, unknown>;
}
export const NetworkPolicies: ResourceType<NetworkPolicy> = {
  group: 'networking.k8s.io',
  version: 'v1',
  kind: 'NetworkPolicy',
  plural: 'networkpolicies',
  namespaced: true,
};

/** Conditions of built-in kinds. */
export interface CoreCondition {
  type: string;
  status: string;
  reason?: string;
  message?: string;
  lastTransitionTime?: string;
}

export interface Job extends KubeObject {
  spec: {
    template: { metadata?: Partial<ObjectMeta>; spec: Record<string, unknown> };
    ttlSecondsAfterFinished?: number;
    suspend?: boolean;
  } & Record<string, unknown>;
  status?: {
    conditions?: CoreCondition[];
    active?: number;
    ready?: number;
    succeeded?: number;
    failed?: number;
    startTime?: string;
    completionTime?: string;
  };
}
export const Jobs: ResourceType<Job> = { group: 'batch', version: 'v1', kind: 'Job', plural: 'jobs', namespaced: true };

export interface ContainerStatus {
  name: string;
  restartCount?: number;
  state?: {
    waiting?: { reason?: string; message?: string };
    running?: { startedAt?: string };
    terminated?: { exitCode: number; reason?: string; message?: string; finishedAt?: string };
  };
}

export interface Pod extends KubeObject {
  spec: { nodeName?: string; serviceAccountName?: string } & Record<string, unknown>;
  status?: {
    phase?: 'Pending' | 'Running' | 'Succeeded' | 'Failed' | 'Unknown';
    reason?: string;
    message?: string;
    podIP?: string;
    startTime?: string;
    conditions?: CoreCondition[];
    containerStatuses?: ContainerStatus[];
    initContainerStatuses?: ContainerStatus[];
  };
}
export const Pods: ResourceType<Pod> = { group: '', version: 'v1', kind: 'Pod', plural: 'pods', namespaced: true };

export interface Lease extends KubeObject {
  spec?: {
    holderIdentity?: string;
    leaseDurationSeconds?: number;
    acquireTime?: string;
    renewTime?: string;
    leaseTransitions?: number;
  };
}
export const Leases: ResourceType<Lease> = {
  group: 'coordination.k8s.io',
  version: 'v1',
  kind: 'Lease',
  plural: 'leases',
  namespaced: true,
};

export interface TokenReview extends KubeObject {
  spec: { token: string; audiences?: string[] };
  status?: {
    authenticated?: boolean;
    error?: string;
    audiences?: string[];
    user?: { username?: string; uid?: string; extra?: Record<string, string[]> };
  };
}
export const TokenReviews: ResourceType<TokenReview> = {
  group: 'authentication.k8s.io',
  version: 'v1',
  kind: 'TokenReview',
  plural: 'tokenreviews',
  namespaced: false,
};

export interface KubeEvent extends KubeObject {
  involvedObject?: { kind?: string; name?: string; namespace?: string; uid?: string };
  type?: string;
  reason?: string;
  message?: string;
  lastTimestamp?: string | null;
  eventTime?: string | null;
}
export const Events: ResourceType<KubeEvent> = {
  group: '',
  version: 'v1',
  kind: 'Event',
  plural: 'events',
  namespaced: true,
};

export interface PersistentVolumeClaim extends KubeObject {
  spec: {
    accessModes?: string[];
    storageClassName?: string;
    resources?: { requests?: Record<string, string> };
  };
  status?: { phase?: 'Pending' | 'Bound' | 'Lost' };
}
export const PersistentVolumeClaims: ResourceType<PersistentVolumeClaim> = {
  group: '',
  version: 'v1',
  kind: 'PersistentVolumeClaim',
  plural: 'persistentvolumeclaims',
  namespaced: true,
};

export interface StorageClass extends KubeObject {
  provisioner?: string;
}
export const StorageClasses: ResourceType<StorageClass> = {
  group: 'storage.k8s.io',
  version: 'v1',
  kind: 'StorageClass',
  plural: 'storageclasses',
  namespaced: false,
};

export interface KubeNode extends KubeObject {
  status?: {
    conditions?: CoreCondition[];
    /** What the container runtime can do; the handler without a name is the default one. */
    runtimeHandlers?: { name?: string; features?: { userNamespaces?: boolean } }[];
  };
}
export const Nodes: ResourceType<KubeNode> = {
  group: '',
  version: 'v1',
  kind: 'Node',
  plural: 'nodes',
  namespaced: false,
};

export interface RoleBinding extends KubeObject {
  roleRef: { apiGroup: string; kind: string; name: string };
  subjects: { kind: string; name: string; namespace: string }[];
}
export const RoleBindings: ResourceType<RoleBinding> = {
  group: 'rbac.authorization.k8s.io',
  version: 'v1',
  kind: 'RoleBinding',
  plural: 'rolebindings',
  namespaced: true,
};
