/** Keeps a leader election's record in a Lease object. */
import type { LeaseRecord, LeaseStore } from '../runtime/leader-elector.js';
import { Leases } from './core-types.js';
import type { Lease } from './core-types.js';
import { orUndefined } from './errors.js';
import { microTime } from './micro-time.js';
import type { KubeApi, ObjectRef } from './types.js';

export function createLeaseStore(
  api: Pick<KubeApi, 'get' | 'create' | 'replace'>,
  ref: Required<ObjectRef>,
): LeaseStore {
  return {
    async read(signal) {
      const lease = await orUndefined(api.get(Leases, ref, { signal }));
      return lease === undefined ? undefined : toRecord(lease);
    },
    async create(record, signal) {
      return toRecord(await api.create(Leases, toLease(ref, record), { signal }));
    },
    async update(record, signal) {
      return toRecord(await api.replace(Leases, toLease(ref, record, record.version), { signal }));
    },
  };
}

function toRecord(lease: Lease): LeaseRecord {
  const spec = lease.spec ?? {};
  return {
    holder: spec.holderIdentity ?? '',
    durationSeconds: spec.leaseDurationSeconds ?? 0,
    acquireTime: spec.acquireTime ?? '',
    renewTime: spec.renewTime ?? '',
    transitions: spec.leaseTransitions ?? 0,
    version: lease.metadata.resourceVersion ?? '',
  };
}

function toLease(ref: Required<ObjectRef>, record: Omit<LeaseRecord, 'version'>, resourceVersion?: string): Lease {
  return {
    apiVersion: 'coordination.k8s.io/v1',
    kind: 'Lease',
    metadata: { ...ref, ...(resourceVersion === undefined ? {} : { resourceVersion }) },
    spec: {
      holderIdentity: record.holder,
      leaseDurationSeconds: record.durationSeconds,
      acquireTime: microTime(record.acquireTime),
      renewTime: microTime(record.renewTime),
      leaseTransitions: record.transitions,
    },
  };
}
