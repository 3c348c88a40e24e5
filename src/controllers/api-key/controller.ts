/**
 * APIKey -> a key, issued once, in a Secret next to it. The key itself is in that Secret and nowhere else: not in
 * status, logs or events. Secrets are read by name only, and only for a key that has no hash.
 */
import { workspaceNamespace, workspaceOfNamespace } from '../../api/names.js';
import { APIKeys } from '../../api/v1alpha1/api-key.js';
import type { APIKey } from '../../api/v1alpha1/api-key.js';
import type { Workspace } from '../../api/v1alpha1/workspace.js';
import { Secrets } from '../../kube/core-types.js';
import type { Secret } from '../../kube/core-types.js';
import { isForbidden, orUndefined } from '../../kube/errors.js';
import type { Cache, KubeApi } from '../../kube/types.js';
import type { Logger } from '../../observability/logger.js';
import type { Clock } from '../../runtime/clock.js';
import type { ReconcileResult } from '../../runtime/controller.js';
import { CONTINUE, DONE, requeueAfter, runSteps } from '../../runtime/steps.js';
import type { Step } from '../../runtime/steps.js';
import { all } from '../common/controller-part.js';
import type { ControllerPart } from '../common/controller-part.js';
import { refOf } from '../common/finalizer.js';
import { setReady } from '../common/ready.js';
import type { NotReady } from '../common/ready.js';
import { patchStatus } from '../common/status-patch.js';
import { keyConditions, nextExpiryCheckMs } from './conditions.js';
import { decideIssue, desiredSecret, newApiKey, recordOf } from './secret.js';
import type { RandomBytes } from './secret.js';
import { BY_NAMESPACE } from '../../projections/indexes.js';

export interface APIKeyDependencies {
  api: Pick<KubeApi, 'get' | 'create' | 'replace' | 'patch'>;
  clock: Clock;
  log: Logger;
  caches: { apiKeys: Cache<APIKey>; workspaces: Cache<Workspace> };
  random?: RandomBytes;
}

/** Our right to Secrets of a new workspace namespace takes a moment to be known to every API server. */
const FORBIDDEN_RECHECK_MS = 1_000;
/** Secrets are not watched: no event tells that a conflicting one is gone. */
const SECRET_RECHECK_MS = 30_000;

type APIKeyStep = Step<APIKey, undefined>;

/** The controller of APIKey. */
export function createAPIKeyController(deps: APIKeyDependencies): ControllerPart {
  const steps = apiKeySteps(deps);
  return {
    name: 'api-key',
    workers: 2,
    watch: (enqueue) =>
      all([
        deps.caches.apiKeys.onChange(({ key }) => enqueue(key)),
        deps.caches.workspaces.onChange(({ key }) => {
          for (const apiKey of deps.caches.apiKeys.byIndex(BY_NAMESPACE, workspaceNamespace(key))) {
            enqueue(`${workspaceNamespace(key)}/${apiKey.metadata.name}`);
          }
        }),
      ]),
    async reconcile(key, signal): Promise<ReconcileResult | void> {
      const cached = deps.caches.apiKeys.get(key);
      if (cached === undefined || cached.metadata.deletionTimestamp !== undefined) return;
      const apiKey = await currentVersion(deps.api, cached, signal);
      if (apiKey === undefined) return;
      return await runSteps({
        object: apiKey,
        inputs: undefined,
        steps,
        writeStatus: (draft, abort) => patchStatus(deps.api, { type: APIKeys, before: apiKey, draft }, abort),
        signal,
      });
    },
  };
}

/**
 * With a cache that lags behind our own status write, a second key would be issued, and the Secret would no longer match the
 * hash: whether a key has to be issued is decided by a live read.
 */
async function currentVersion(
  api: Pick<KubeApi, 'get'>,
  cached: APIKey,
  signal: AbortSignal,
): Promise<APIKey | undefined> {
  if (cached.status?.hash !== undefined) return cached;
  return await orUndefined(api.get(APIKeys, refOf(cached.metadata), { signal }));
}

/** in a Workspace? -> key issued -> conditions. */
function apiKeySteps(deps: APIKeyDependencies): readonly APIKeyStep[] {
  return [
    {
      name: 'workspace',
      run: (draft) => {
        const { namespace = '' } = draft.metadata;
        const name = workspaceOfNamespace(namespace);
        const workspace = name === undefined ? undefined : deps.caches.workspaces.get(name);
        // status.namespace is set only when the namespace is the Workspace's own or adopted.
        if (workspace?.status?.namespace === namespace) return CONTINUE;
        setReady(draft, workspaceNotFound(namespace), deps.clock);
        return DONE;
      },
    },
    {
      name: 'issue',
      run: async (draft, _inputs, signal) => {
        if (draft.status?.hash !== undefined) return CONTINUE;
        try {
          if (await issueKey(deps, draft, signal)) return CONTINUE;
          setReady(draft, secretExists(draft), deps.clock);
          return requeueAfter(SECRET_RECHECK_MS);
        } catch (error) {
          if (!isForbidden(error)) throw error;
          const message = `the controller may not write Secrets in namespace ${draft.metadata.namespace} yet`;
          setReady(draft, { reason: 'SecretForbidden', message }, deps.clock);
          return requeueAfter(FORBIDDEN_RECHECK_MS);
        }
      },
    },
    {
      name: 'conditions',
      run: (draft) => {
        const now = deps.clock.now();
        draft.status = { ...draft.status, conditions: keyConditions(draft, now) };
        const next = nextExpiryCheckMs(draft, now);
        return next === undefined ? DONE : requeueAfter(next);
      },
    },
  ];
}

/** First the Secret, then (by the engine, under the version that was read) the hash. False: the name is taken. */
async function issueKey(deps: APIKeyDependencies, draft: APIKey, signal: AbortSignal): Promise<boolean> {
  const { api } = deps;
  const existing = await orUndefined<Secret>(api.get(Secrets, refOf(draft.metadata), { signal }));
  const decision = decideIssue(draft, existing);
  if (decision.action === 'refuse') return false;
  const key = 'key' in decision ? decision.key : newApiKey(deps.random);
  const desired = desiredSecret(draft, key);
  if (decision.action === 'create') await api.create(Secrets, desired, { signal });
  if ('existing' in decision) {
    const { resourceVersion } = decision.existing.metadata;
    const versioned = resourceVersion === undefined ? {} : { resourceVersion };
    await api.replace(Secrets, { ...desired, metadata: { ...desired.metadata, ...versioned } }, { signal });
  }
  draft.status = { ...draft.status, ...recordOf(draft, key) };
  deps.log.info({ namespace: draft.metadata.namespace, apiKey: draft.metadata.name }, 'api key issued');
  return true;
}

function workspaceNotFound(namespace: string): NotReady {
  return {
    reason: 'WorkspaceNotFound',
    message: `namespace ${namespace} is not the namespace of a Workspace; create the APIKey in bw-ws-<workspace>`,
  };
}

function secretExists({ metadata }: APIKey): NotReady {
  return {
    reason: 'SecretExists',
    message: `Secret ${metadata.name} exists and was not made for this key; delete it, or name the APIKey differently`,
  };
}
