/** That a Secret of the installation changed or went, and nothing of it. The watch is for one name, as RBAC allows no other. */
import { Secrets } from '../kube/core-types.js';
import type { Secret } from '../kube/core-types.js';
import type { InformerOptions } from '../kube/types.js';

/** Enough to see a change: what is in a Secret is read by name when it is needed. */
export interface InstallationSecret {
  version: string;
}

export function installationSecretInformer(
  namespace: string,
  name: string,
): InformerOptions<Secret, InstallationSecret> {
  return {
    type: Secrets,
    namespace,
    fieldSelector: `metadata.name=${name}`,
    project: ({ metadata }) => ({ version: metadata.resourceVersion ?? '' }),
  };
}
