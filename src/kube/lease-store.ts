import type { LeaseStore } from '../runtime/leader-elector.js';
import type { KubeApi, ObjectRef } from './types.js';
export declare function createLeaseStore(
  api: Pick<KubeApi, 'get' | 'create' | 'replace'>,
  ref: Required<ObjectRef>,
): LeaseStore;
