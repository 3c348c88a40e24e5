/** The address of one of our Services, as pods are given it: they need no DNS. */
import { Services } from '../kube/core-types.js';
import type { KubeApi, ObjectRef } from '../kube/types.js';
import type { Clock } from '../runtime/clock.js';

export interface ServiceAddress {
  ip: string;
  /** The first port of the Service; undefined when it has none. */
  port: number | undefined;
}

/** A Service keeps its address for its life, but it may be made again. */
const ADDRESS_MS = 60_000;

/** Reads the Service once a minute at most; rejects with a message for the operator while it has no address. */
export function createServiceAddress(
  { api, clock }: { api: Pick<KubeApi, 'get'>; clock: Pick<Clock, 'monotonic'> },
  ref: ObjectRef,
): (signal: AbortSignal) => Promise<ServiceAddress> {
  let known: { address: ServiceAddress; at: number } | undefined;
  return async (signal) => {
    const now = clock.monotonic();
    if (known !== undefined && now - known.at < ADDRESS_MS) return known.address;
    const { spec } = await api.get(Services, ref, { signal });
    const ip = spec?.clusterIP;
    if (ip === undefined || ip === '' || ip === 'None') {
      throw new Error(`Service ${ref.namespace}/${ref.name} has no cluster IP: the pods of runs are given addresses`);
    }
    known = { address: { ip, port: spec?.ports?.[0]?.port }, at: now };
    return known.address;
  };
}
