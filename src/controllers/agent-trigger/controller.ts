/**
 * AgentTrigger: gives the URL its secret part and says whether the trigger can start anything. It needs no finalizer:
 * its runs are counted by agent, Box and Workspace, and an owner that is gone counts as done.
 */
import { randomBytes } from 'node:crypto';
import { AgentTriggers } from '../../api/v1alpha1/agent-trigger.js';
import type { AgentTrigger } from '../../api/v1alpha1/agent-trigger.js';
import { LABEL_CREDENTIAL } from '../../api/credentials.js';
import { objectKey } from '../../api/meta.js';
import { WEBHOOK_KEYS_SECRET } from '../../api/webhook-keys.js';
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
import type { ControllerTrigger } from '../../projections/agent-trigger.js';
import type { ControllerAgent } from '../../projections/agent.js';
import type { ControllerWebhookKeys } from '../../projections/webhook-keys.js';
import { BY_AGENT, BY_NAMESPACE, agentKey } from '../../projections/indexes.js';

/** The ids of the keyring's keys; the keys themselves are not needed here. */
export interface KeyIds {
  current: string;
  all: ReadonlySet<string>;
}

export interface AgentTriggerDependencies {
  api: Pick<KubeApi, 'patch'>;
  clock: Clock;
  log: Logger;
  caches: {
    triggers: Cache<ControllerTrigger>;
    agents: Cache<ControllerAgent>;
    webhookKeys: Cache<ControllerWebhookKeys>;
  };
  /** Undefined until the keyring was read. */
  keyIds: () => KeyIds | undefined;
  random?: (size: number) => Uint8Array;
}

const TOKEN_BYTES = 16;
const KEYRING_RECHECK_MS = 1_000;

type TriggerStep = Step<ControllerTrigger, undefined>;

/** The controller of AgentTrigger. */
export function createAgentTriggerController(deps: AgentTriggerDependencies): ControllerPart {
  const { triggers, agents, webhookKeys } = deps.caches;
  const steps = triggerSteps(deps);
  return {
    name: 'agent-trigger',
    workers: 2,
    watch: (enqueue) =>
      all([
        triggers.onChange(({ key }) => enqueue(key)),
        agents.onChange(({ key, previous, current }) => {
          if (previous !== undefined && current !== undefined) return;
          for (const trigger of triggers.byIndex(BY_AGENT, key)) enqueue(objectKey(trigger.metadata));
        }),
        webhookKeys.onChange(({ previous, current }) => {
          const namespace = (current ?? previous)?.namespace ?? '';
          for (const { metadata, spec } of triggers.byIndex(BY_NAMESPACE, namespace)) {
            if (spec.verify !== undefined) enqueue(objectKey(metadata));
          }
        }),
      ]),
    async reconcile(key, signal): Promise<ReconcileResult | void> {
      const trigger = triggers.get(key);
      if (trigger === undefined || trigger.metadata.deletionTimestamp !== undefined) return;
      return await runSteps({
        object: trigger,
        inputs: undefined,
        steps,
        writeStatus: (draft, abort) => patchStatus(deps.api, { type: AgentTriggers, before: trigger, draft }, abort),
        signal,
      });
    },
  };
}

function triggerSteps(deps: AgentTriggerDependencies): readonly TriggerStep[] {
  return [
    {
      name: 'token',
      run: async (draft, _inputs, signal) => {
        const keyIds = deps.keyIds();
        if (keyIds === undefined) return requeueAfter(KEYRING_RECHECK_MS);
        const missing = missingToken(draft.spec, keyIds, deps.random ?? randomBytes);
        if (missing === undefined) return CONTINUE;
        const { resourceVersion } = draft.metadata;
        const body = { metadata: { resourceVersion }, spec: missing };
        const written = await deps.api.patch(AgentTriggers, refOf(draft.metadata), body, { type: 'merge', signal });
        draft.metadata = written.metadata;
        draft.spec = { ...draft.spec, ...missing };
        return CONTINUE;
      },
    },
    {
      name: 'ready',
      run: (draft) => {
        setReady(draft, whyNotReady(draft, deps), deps.clock);
        return DONE;
      },
    },
  ];
}

/** The parts of the token that are to be set; undefined when none is. A key that is pinned stays. */
export function missingToken(
  spec: Pick<AgentTrigger['spec'], 'tokenId' | 'keyId'>,
  keyIds: KeyIds,
  random: (size: number) => Uint8Array,
): { tokenId?: string; keyId?: string } | undefined {
  if (spec.tokenId !== undefined && spec.keyId !== undefined) return undefined;
  return {
    ...(spec.tokenId === undefined ? { tokenId: Buffer.from(random(TOKEN_BYTES)).toString('hex') } : {}),
    ...(spec.keyId === undefined ? { keyId: keyIds.current } : {}),
  };
}

function whyNotReady(
  { metadata: { namespace }, spec: { agent, keyId, verify } }: ControllerTrigger,
  { caches, keyIds }: AgentTriggerDependencies,
): NotReady | undefined {
  if (caches.agents.get(agentKey(namespace, agent)) === undefined) {
    return { reason: 'AgentNotFound', message: `no Agent ${agent} is in this namespace; create it` };
  }
  if (keyId !== undefined && keyIds()?.all.has(keyId) === false) {
    const message = `the keyring has no key ${keyId}; put the key back, or rotate the token of the trigger`;
    return { reason: 'KeyNotFound', message };
  }
  if (verify === undefined) return undefined;
  const missing = whatIsMissing(verify, caches.webhookKeys.get(`${namespace}/${WEBHOOK_KEYS_SECRET}`));
  if (missing === undefined) return undefined;
  return { reason: 'WebhookKeyNotFound', message: `${missing}; until then every call of the URL answers 404` };
}

/** What keeps spec.verify from its key, with the next step. */
function whatIsMissing(
  { scheme, key }: NonNullable<AgentTrigger['spec']['verify']>,
  keys: ControllerWebhookKeys | undefined,
): string | undefined {
  const secret = `Secret ${WEBHOOK_KEYS_SECRET}`;
  const label = `${LABEL_CREDENTIAL}=true`;
  if (keys === undefined) {
    return `there is no ${secret} in this namespace: create it with the label ${label} and the entry ${key}`;
  }
  if (!keys.labelled) return `${secret} may not be read: label it ${label}`;
  const schemes = keys.usable.get(key);
  if (schemes === undefined) return `there is no entry ${key} in ${secret}: add it`;
  return schemes.includes(scheme)
    ? undefined
    : `entry ${key} of ${secret} holds no key of the form of ${scheme}: correct it`;
}
