/** Projections of AgentTriggers. */
import { boxOfNamespace } from '../api/names.js';
import { AgentTriggers } from '../api/v1alpha1/agent-trigger.js';
import type { AgentTrigger, TriggerMethod } from '../api/v1alpha1/agent-trigger.js';
import type { FoldedTotals } from '../api/v1alpha1/common.js';
import type { InformerOptions } from '../kube/types.js';
import { CHILD_INDEXES, CONTROLLER_CHILD_INDEXES, projectApiChild } from './agent-child.js';
import type { ApiChild } from './agent-child.js';
import { withoutManagedFields } from './meta.js';

/** For the tools and the webhook: with its instruction, so that a call of its URL needs no request. */
export interface ApiTrigger extends ApiChild {
  box: string;
  body: string;
  methods: readonly TriggerMethod[];
  enabled: boolean;
  tokenId: string | undefined;
  keyId: string | undefined;
  dedupeHeader: string | undefined;
  verify: AgentTrigger['spec']['verify'];
  /** Runs that are no longer in the cluster, and those counted already but maybe still visible. */
  folded: FoldedTotals | undefined;
  folding: readonly string[] | undefined;
}

export function projectApiTrigger(trigger: AgentTrigger): ApiTrigger {
  const child = projectApiChild(trigger);
  const { body, methods, enabled, tokenId, keyId, dedupeHeader, verify } = trigger.spec;
  return {
    ...child,
    box: boxOfNamespace(child.namespace) ?? '',
    body,
    methods,
    enabled,
    tokenId,
    keyId,
    dedupeHeader,
    verify,
    folded: trigger.status?.folded,
    folding: trigger.status?.folding,
  };
}

export const apiTriggerInformer: InformerOptions<AgentTrigger, ApiTrigger> = {
  type: AgentTriggers,
  project: projectApiTrigger,
  indexes: CHILD_INDEXES,
};

/** An AgentTrigger without its instruction. */
export type ControllerTrigger = Omit<AgentTrigger, 'spec'> & {
  spec: Pick<AgentTrigger['spec'], 'agent' | 'name' | 'enabled' | 'tokenId' | 'keyId' | 'verify'>;
};

export function projectControllerTrigger(trigger: AgentTrigger): ControllerTrigger {
  const { agent, name, enabled, tokenId, keyId, verify } = trigger.spec;
  const optional = {
    ...(tokenId === undefined ? {} : { tokenId }),
    ...(keyId === undefined ? {} : { keyId }),
    ...(verify === undefined ? {} : { verify }),
  };
  return { ...withoutManagedFields(trigger), spec: { agent, name, enabled, ...optional } };
}

export const controllerTriggerInformer: InformerOptions<AgentTrigger, ControllerTrigger> = {
  type: AgentTriggers,
  project: projectControllerTrigger,
  indexes: CONTROLLER_CHILD_INDEXES,
};
