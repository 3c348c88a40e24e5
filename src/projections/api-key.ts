/** Projections of APIKeys. */
import { workspaceOfNamespace } from '../api/names.js';
import { APIKeys } from '../api/v1alpha1/api-key.js';
import type { APIKey } from '../api/v1alpha1/api-key.js';
import type { InformerOptions } from '../kube/types.js';
import { BY_NAMESPACE, namespaceValues } from './indexes.js';
import { identityOf, withoutManagedFields } from './meta.js';
import type { Identity } from './meta.js';

/** Keys by their SHA-256 in hex. */
export const BY_HASH = 'hash';

/** For whoever checks a key. */
export interface ApiKeyProjection extends Identity {
  namespace: string;
  workspace: string;
  prefix: string;
  readOnly: boolean;
  lastUsedAt: string | undefined;
  /** What decides whether the key is valid (src/api/api-key-validity.ts). */
  credential: Pick<APIKey, 'metadata' | 'spec' | 'status'>;
}

export function projectApiKey(key: APIKey): ApiKeyProjection {
  const { name, namespace = '', deletionTimestamp } = key.metadata;
  return {
    ...identityOf(key.metadata),
    namespace,
    workspace: workspaceOfNamespace(namespace) ?? '',
    prefix: key.status?.prefix ?? name,
    readOnly: key.spec.readOnly,
    lastUsedAt: key.status?.lastUsedAt,
    credential: {
      metadata: { name, ...(deletionTimestamp === undefined ? {} : { deletionTimestamp }) },
      spec: key.spec,
      status: key.status?.hash === undefined ? {} : { hash: key.status.hash },
    },
  };
}

export const apiKeyInformer: InformerOptions<APIKey, ApiKeyProjection> = {
  type: APIKeys,
  project: projectApiKey,
  indexes: {
    [BY_HASH]: ({ credential: { status } }) => (status?.hash === undefined ? [] : [status.hash]),
  },
};

/** Whole: few, and reconciled. */
export const controllerApiKeyInformer: InformerOptions<APIKey, APIKey> = {
  type: APIKeys,
  project: withoutManagedFields,
  indexes: { [BY_NAMESPACE]: namespaceValues },
};
