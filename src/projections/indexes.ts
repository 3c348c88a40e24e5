/** Indexes that objects of several kinds have, and their values; those of one kind stand beside its projections. */
import type { ObjectMeta } from '../api/meta.js';

export const BY_NAMESPACE = 'namespace';
/** Objects of an agent, by {@link agentKey}. */
export const BY_AGENT = 'agent';
/** By the name of their Workspace. */
export const BY_WORKSPACE = 'workspace';

/** `<namespace>/<agent>`: the key of an agent in a cache, and the value of the index BY_AGENT. */
export function agentKey(namespace: string | undefined, agent: string): string {
  return namespace === undefined ? agent : `${namespace}/${agent}`;
}

/** Values of the index BY_NAMESPACE for a projection that has metadata. */
export function namespaceValues({ metadata }: { metadata: ObjectMeta }): readonly string[] {
  return metadata.namespace === undefined ? [] : [metadata.namespace];
}

/** Values of the index BY_AGENT for a projection that has metadata and spec. */
export function agentValues({ metadata, spec }: { metadata: ObjectMeta; spec: { agent: string } }): readonly string[] {
  return [agentKey(metadata.namespace, spec.agent)];
}
