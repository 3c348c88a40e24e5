/** Who calls: the API key of a request against the index of keys (spec 5.1, 5.2). */
import { hashOfApiKey, isKeyValid } from '../../api/api-key-validity.js';
import { APIKeys } from '../../api/v1alpha1/api-key.js';
import type { KubeApi } from '../../kube/types.js';
import { orUndefined } from '../../kube/errors.js';
import type { Clock } from '../../runtime/clock.js';
import type { ApiCaches } from '../caches.js';
import { BY_HASH, projectApiKey } from '../../projections/api-key.js';
import type { ApiKeyProjection } from '../../projections/api-key.js';

/** The holder of a valid key: one workspace, everything in it (spec 5.3). */
export interface Caller {
  workspace: string;
  /** The visible characters of the key; stands for the caller in annotations and in the audit log. */
  keyPrefix: string;
  readOnly: boolean;
  /** Where the call came from, for the audit log. */
  address?: string;
  /** What its runs are said to come from; `api` when absent. */
  origin?: 'chat';
}

export interface KeyCheck {
  /**
   * The caller, or undefined for a missing, malformed, unknown, revoked or expired key. No request while the watch of
   * keys is healthy; one live GET while it is behind: rejects when that has no answer.
   */
  check(authorization: string | undefined): Promise<Caller | undefined>;
  /** The same for a key that was presented before, by its hash. */
  checkHash(hash: string): Promise<Caller | undefined>;
}

export interface KeyCheckDeps {
  caches: Pick<ApiCaches, 'APIKey' | 'Workspace'>;
  api: Pick<KubeApi, 'get'>;
  clock: Clock;
  /** Notified of every use of a valid key. */
  used(key: ApiKeyProjection): void;
}

/** The scheme in any case (RFC 9110), then the key. */
const BEARER = /^bearer +([!-~]+) *$/i;

export function createKeyCheck(deps: KeyCheckDeps): KeyCheck {
  const checkHash = async (hash: string): Promise<Caller | undefined> => {
    const known = deps.caches.APIKey.byIndex(BY_HASH, hash)[0];
    const key = known === undefined ? undefined : await current(deps, known, hash);
    if (key === undefined || !isKeyValid(key.credential, deps.clock.now())) return undefined;
    const workspace = deps.caches.Workspace.get(key.workspace);
    if (workspace === undefined || workspace.deleting) return undefined;
    deps.used(key);
    return { workspace: key.workspace, keyPrefix: key.prefix, readOnly: key.readOnly };
  };
  return {
    checkHash,
    async check(authorization) {
      const presented = BEARER.exec(authorization ?? '')?.[1];
      return presented === undefined ? undefined : checkHash(hashOfApiKey(presented));
    },
  };
}

/** The key as it is now: from the cache, or live while the cache may have missed a revocation. */
async function current(
  deps: KeyCheckDeps,
  known: ApiKeyProjection,
  hash: string,
): Promise<ApiKeyProjection | undefined> {
  if (deps.caches.APIKey.isHealthy()) return known;
  const live = await orUndefined(deps.api.get(APIKeys, { namespace: known.namespace, name: known.name }));
  return live?.status?.hash === hash ? projectApiKey(live) : undefined;
}
