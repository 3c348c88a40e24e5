/**
 * Finds triggers for their public URLs: no request while the watches are healthy, live GETs while one is behind.
 */
import { boxNamespace, childName } from '../../api/names.js';
import type { AgentRef } from '../../api/names.js';
import { AgentTriggers } from '../../api/v1alpha1/agent-trigger.js';
import type { TriggerMethod } from '../../api/v1alpha1/agent-trigger.js';
import { Agents } from '../../api/v1alpha1/agent.js';
import { orUndefined } from '../../kube/errors.js';
import type { KubeApi } from '../../kube/types.js';
import { projectApiTrigger } from '../../projections/agent-trigger.js';
import type { ApiTrigger } from '../../projections/agent-trigger.js';
import { projectApiAgent } from '../../projections/agent.js';
import type { ApiAgent } from '../../projections/agent.js';
import { agentKey } from '../../projections/indexes.js';
import type { FireableTrigger } from '../../run/start/fire-trigger.js';
import type { ApiCaches } from '../caches.js';
import { isCommitted } from '../scope.js';

/** A trigger as the handler of its URL sees it. */
export interface TriggerTarget extends FireableTrigger {
  tokenId: string | undefined;
  keyId: string | undefined;
  enabled: boolean;
  methods: readonly TriggerMethod[];
  /** Calls with the same value of this header are one run. */
  dedupeHeader: string | undefined;
  /** The signature that calls must carry; undefined when none is looked at. */
  verify: ApiTrigger['verify'];
}

/** Finds triggers for the public URL. */
export interface TriggerReader {
  /** The trigger with its agent; undefined when trigger, agent or Box is not there or is being deleted. */
  find(agent: AgentRef, slug: string, signal: AbortSignal): Promise<TriggerTarget | undefined>;
}

type TriggerCaches = Pick<ApiCaches, 'Box' | 'Agent' | 'AgentTrigger'>;

export interface TriggerReaderDeps {
  caches: TriggerCaches;
  api: Pick<KubeApi, 'get'>;
  /** Makes the key of a trigger known that was signed by a new key (keyring.ts). */
  ensureKey: (keyId: string | undefined) => Promise<void>;
}

export function createTriggerReader({ caches, api, ensureKey }: TriggerReaderDeps): TriggerReader {
  return {
    async find(ref, slug, signal) {
      const namespace = boxNamespace(ref.box);
      const healthy = caches.Agent.isHealthy() && caches.AgentTrigger.isHealthy();
      if (healthy) {
        const trigger = caches.AgentTrigger.get(`${namespace}/${childName(ref.agent, slug)}`);
        await ensureKey(trigger?.keyId);
        return target(caches, caches.Agent.get(agentKey(namespace, ref.agent)), trigger);
      }
      const [agent, trigger] = await Promise.all([
        orUndefined(api.get(Agents, { namespace, name: ref.agent }, { signal })),
        orUndefined(api.get(AgentTriggers, { namespace, name: childName(ref.agent, slug) }, { signal })),
      ]);
      await ensureKey(trigger?.spec.keyId);
      return target(
        caches,
        agent === undefined ? undefined : projectApiAgent(agent),
        trigger === undefined ? undefined : projectApiTrigger(trigger),
      );
    },
  };
}

function target(
  caches: TriggerCaches,
  agent: ApiAgent | undefined,
  trigger: ApiTrigger | undefined,
): TriggerTarget | undefined {
  if (agent === undefined || agent.deleting) return undefined;
  const box = caches.Box.get(agent.box);
  if (box === undefined || box.deleting) return undefined;
  if (!isCommitted(caches, agent)) return undefined;
  if (trigger === undefined || trigger.deleting || trigger.agent !== agent.name) return undefined;
  return {
    agent: { box: agent.box, agent: agent.name },
    agentUid: agent.uid,
    slug: trigger.slug,
    uid: trigger.uid,
    tokenId: trigger.tokenId,
    keyId: trigger.keyId,
    enabled: trigger.enabled,
    methods: trigger.methods,
    dedupeHeader: trigger.dedupeHeader,
    verify: trigger.verify,
    body: trigger.body,
  };
}
