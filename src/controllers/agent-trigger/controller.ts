/**
 * AgentTrigger: gives the URL its secret part and says whether the trigger can start anything. It needs no finalizer:
 * its runs are counted by agent, Box and Workspace, and an owner that is gone counts as done.
 */
import { randomBytes } from 'node:crypto';
import { AgentTriggers } from '../../api/v1alpha1/agent-trigger.js';
import type { AgentTrigger } from '../../api/v1alpha1/agent-trigger.js';
import { objectKey } from '../../api/meta.js';
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
import { BY_AGENT, agentKey } from '../../projections/indexes.js';

/** The ids of the keyring's keys; the keys themselves are not needed here. */
export interface KeyIds {
  current: string;
  all: ReadonlySet<string>;
}

export interface AgentTriggerDependencies {
  api: Pick<KubeApi, 'patch'>;
  clock: Clock;
  log: Logger;
  caches: { triggers: Cache<ControllerTrigger>; agents: Cache<ControllerAgent> };
  /** Undefined until the keyring was read. */
  keyIds: () => KeyIds | undefined;
  random?: (size: number) => Uint8Array;
}

const TOKEN_BYTES = 16;
const KEYRING_RECHECK_MS = 1_000;

type TriggerStep = Step<ControllerTrigger, undefined>;

/** The controller of AgentTrigger. */
export function createAgentTriggerController(deps: AgentTriggerDependencies): ControllerPart {
  const { triggers, agents } = deps.caches;
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
        const { namespace } = draft.metadata;
        const hasAgent = deps.caches.agents.get(agentKey(namespace, draft.spec.agent)) !== undefined;
        setReady(draft, whyNotReady(draft.spec, hasAgent, deps.keyIds()), deps.clock);
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
  spec: Pick<AgentTrigger['spec'], 'agent' | 'keyId'>,
  hasAgent: boolean,
  keyIds: KeyIds | undefined,
): NotReady | undefined {
  if (!hasAgent) {
    return { reason: 'AgentNotFound', message: `no Agent ${spec.agent} is in this namespace; create it` };
  }
  if (spec.keyId !== undefined && keyIds?.all.has(spec.keyId) === false) {
    const message = `the keyring has no key ${spec.keyId}; put the key back, or rotate the token of the trigger`;
    return { reason: 'KeyNotFound', message };
  }
  return undefined;
}
