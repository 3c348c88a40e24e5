/**
 * Which credentials each agent has: the gateway, the only process that may read them, tells the names of the keys
 * and the hosts in the agent's status. Every replica does it; a status that is right already is not written.
 */
import {
  ANNOTATION_EXPOSE,
  ANNOTATION_HOSTS,
  LABEL_CREDENTIAL,
  MAX_SECRET_NAMES,
  isSecretName,
  parseHosts,
  secretNameOf,
} from '../../api/credentials.js';
import { objectKey } from '../../api/meta.js';
import { Agents } from '../../api/v1alpha1/agent.js';
import { Secrets } from '../../kube/core-types.js';
import type { Secret } from '../../kube/core-types.js';
import { orUndefined } from '../../kube/errors.js';
import type { Informer, KubeApi } from '../../kube/types.js';
import type { Logger } from '../../observability/logger.js';
import type { Clock } from '../../runtime/clock.js';
import type { Runnable } from '../../runtime/manager.js';
import { sameJson } from '../../runtime/same-json.js';
import type { AgentCredentials } from '../../projections/agent.js';
import { createRounds } from './rounds.js';

/** A Secret wakes nobody, so every agent that has credentials is looked at again this often. */
export const RECHECK_MS = 30_000;
const MAX_HOSTS = 64;

export interface SecretNamesDeps {
  api: Pick<KubeApi, 'get' | 'patch'>;
  agents: Pick<Informer<AgentCredentials>, 'values' | 'get' | 'onChange'>;
  clock: Clock;
  log: Logger;
}

/** What a Secret tells: nothing when it is not meant for agents. */
export function namesIn(secret: Secret | undefined): Pick<AgentCredentials, 'presentSecrets' | 'secretHosts'> {
  const { labels, annotations } = secret?.metadata ?? {};
  const secretHosts = parseHosts(annotations?.[ANNOTATION_HOSTS]).slice(0, MAX_HOSTS);
  const isUsable = secretHosts.length > 0 || annotations?.[ANNOTATION_EXPOSE] === 'true';
  if (labels?.[LABEL_CREDENTIAL] !== 'true' || !isUsable) return { presentSecrets: [], secretHosts: [] };
  const presentSecrets = Object.keys(secret?.data ?? {})
    .filter(isSecretName)
    .sort();
  return { presentSecrets: presentSecrets.slice(0, MAX_SECRET_NAMES), secretHosts };
}

/** Looks at agents that changed at once, and at all every 30 s, one after the other. */
export function createSecretNames(deps: SecretNamesDeps): Runnable {
  return createRounds({
    name: 'names of credentials',
    clock: deps.clock,
    log: deps.log,
    everyMs: RECHECK_MS,
    all: () => [...deps.agents.values()].map((agent) => objectKey(agent.metadata)),
    onChange: (changed) =>
      deps.agents.onChange(({ key, current }) => {
        if (current !== undefined) changed(key);
      }),
    begin: () => async (key, signal) => {
      const agent = deps.agents.get(key);
      if (agent !== undefined && agent.metadata.deletionTimestamp === undefined) await tell(deps, agent, signal);
    },
    failure: 'credentials of an agent could not be looked at',
  });
}

async function tell({ api }: SecretNamesDeps, agent: AgentCredentials, signal: AbortSignal): Promise<void> {
  const { name, namespace = '', uid, resourceVersion } = agent.metadata;
  const seen = namesIn(agent.usesCredentials ? await readSecret(api, namespace, name, signal) : undefined);
  if (sameJson(seen.presentSecrets, agent.presentSecrets) && sameJson(seen.secretHosts, agent.secretHosts)) return;
  const body = { metadata: { uid, resourceVersion }, status: seen };
  await api.patch(Agents, { namespace, name }, body, { type: 'merge', subresource: 'status', signal });
}

async function readSecret(
  api: Pick<KubeApi, 'get'>,
  namespace: string,
  agent: string,
  signal: AbortSignal,
): Promise<Secret | undefined> {
  return await orUndefined(api.get(Secrets, { namespace, name: secretNameOf(agent) }, { signal }));
}
