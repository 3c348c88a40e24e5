/** What the projections of kinds that belong to an agent have in common. */
import { isGitOps } from '../api/gitops.js';
import type { KubeObject, ObjectMeta, ResourceType } from '../api/meta.js';
import { slugOfChildName } from '../api/names.js';
import type { InformerOptions } from '../kube/types.js';
import { BY_AGENT, BY_NAMESPACE, agentValues, namespaceValues, agentKey } from './indexes.js';
import { identityOf, withoutManagedFields } from './meta.js';
import type { Identity } from './meta.js';

/** An object of an agent that matters to controllers only because it goes with the agent. */
export interface AgentChild {
  metadata: ObjectMeta;
  spec: { agent: string };
}

/** Indexes of projections that have metadata and spec, as the controllers use them. */
export const CONTROLLER_CHILD_INDEXES = { [BY_NAMESPACE]: namespaceValues, [BY_AGENT]: agentValues };

/** Drops all but whose the object is. */
export function agentChildInformer<T extends KubeObject & { spec: { agent: string } }>(
  type: ResourceType<T>,
): InformerOptions<T, AgentChild> {
  return {
    type,
    project: (child) => ({ metadata: withoutManagedFields(child).metadata, spec: { agent: child.spec.agent } }),
    indexes: CONTROLLER_CHILD_INDEXES,
  };
}

/** Indexes of flat projections, as API and gateway use them. */
export const CHILD_INDEXES = {
  [BY_AGENT]: (child: { namespace: string; agent: string }) => [agentKey(child.namespace, child.agent)],
};

/** For the tools: an object whose name is `<agent>.<slug>`. */
export interface ApiChild extends Identity {
  namespace: string;
  agent: string;
  slug: string;
  displayName: string;
  description: string;
  gitOps: boolean;
}

export function projectApiChild(object: {
  metadata: ObjectMeta;
  spec: { agent: string; name: string; description?: string };
}): ApiChild {
  return {
    ...identityOf(object.metadata),
    namespace: object.metadata.namespace ?? '',
    agent: object.spec.agent,
    slug: slugOfChildName(object.metadata.name) ?? '',
    displayName: object.spec.name,
    description: object.spec.description ?? '',
    gitOps: isGitOps(object.metadata),
  };
}
