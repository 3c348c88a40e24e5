/** How a use-case asks the API server: within a time limit, and only for what the caches do not know. */
import type { KubeObject, ResourceType } from '../api/meta.js';
import type { Cache, KubeApi } from '../kube/types.js';
import { orUndefined } from '../kube/errors.js';
import type { Clock } from '../runtime/clock.js';
import { withTimeout } from '../runtime/with-timeout.js';

interface CallDeps {
  api: Pick<KubeApi, 'get'>;
  clock: Clock;
}

/** Longest wait for one call of the Kubernetes API inside a tool. */
export const KUBE_CALL_MS = 15_000;

/** Names that can be in a path of the API server: an id from a client is never put there unchecked. */
export const DNS_LABEL = /^[a-z0-9]([-a-z0-9]{0,61}[a-z0-9])?$/;

/** Where objects of a kind are cached, and how one that was read live is projected. */
export interface Source<T extends KubeObject, P> {
  cache: Pick<Cache<P>, 'get'>;
  type: ResourceType<T>;
  project: (object: T) => P;
}

/** One object: from the cache, or by one live GET when the cache does not know it. */
export async function cachedOrLive<T extends KubeObject, P>(
  deps: CallDeps,
  source: Source<T, P>,
  namespace: string,
  name: string,
): Promise<P | undefined> {
  const cached = source.cache.get(`${namespace}/${name}`);
  if (cached !== undefined) return cached;
  const live = await kubeCall(deps, (signal) =>
    orUndefined(deps.api.get(source.type, { namespace, name }, { signal })),
  );
  return live === undefined ? undefined : source.project(live);
}

/** One call of the Kubernetes API, or of the archive, with the time limit of all tools. */
export function kubeCall<T>(deps: Pick<CallDeps, 'clock'>, call: (signal: AbortSignal) => Promise<T>): Promise<T> {
  return withTimeout(deps.clock, KUBE_CALL_MS, call);
}

/** Reads that end with the call that they belong to. */
export function readsWithin({ api }: Pick<CallDeps, 'api'>, signal: AbortSignal): Pick<KubeApi, 'get'> {
  return { get: (type, ref) => api.get(type, ref, { signal }) };
}
