/** The keys with which senders sign calls of a trigger: from the cache, by live GET while the watch is behind. */
import { boxNamespace } from '../../api/names.js';
import { WEBHOOK_KEYS_SECRET, webhookKeysIn } from '../../api/webhook-keys.js';
import { Secrets } from '../../kube/core-types.js';
import { orUndefined } from '../../kube/errors.js';
import type { Informer, KubeApi } from '../../kube/types.js';
import { projectApiWebhookKeys } from '../../projections/webhook-keys.js';
import type { ApiWebhookKeys } from '../../projections/webhook-keys.js';
import type { TriggerTarget } from './trigger-reader.js';

/** The keys of a trigger; none when the Secret, its label or the entry is missing. */
export type WebhookKeyReader = (trigger: VerifiedTrigger, signal: AbortSignal) => Promise<readonly Buffer[]>;

export type VerifiedTrigger = Pick<TriggerTarget, 'agent'> & { verify: NonNullable<TriggerTarget['verify']> };

export interface WebhookKeyDeps {
  cache: Pick<Informer<ApiWebhookKeys>, 'get' | 'isHealthy'>;
  api: Pick<KubeApi, 'get'>;
}

export function createWebhookKeyReader({ cache, api }: WebhookKeyDeps): WebhookKeyReader {
  return async ({ agent, verify }, signal) => {
    const namespace = boxNamespace(agent.box);
    const entries = cache.isHealthy()
      ? cache.get(`${namespace}/${WEBHOOK_KEYS_SECRET}`)
      : await readLive(api, namespace, signal);
    return webhookKeysIn(entries?.get(verify.key), verify.scheme);
  };
}

async function readLive(
  api: Pick<KubeApi, 'get'>,
  namespace: string,
  signal: AbortSignal,
): Promise<ApiWebhookKeys | undefined> {
  const secret = await orUndefined(api.get(Secrets, { namespace, name: WEBHOOK_KEYS_SECRET }, { signal }));
  return secret === undefined ? undefined : projectApiWebhookKeys(secret);
}
