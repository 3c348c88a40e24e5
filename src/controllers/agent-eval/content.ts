/** What the agent of an eval is made of when its cases begin and when they have ended: a digest for who wants to rely on them. */
import { slugOfChildName } from '../../api/names.js';
import { AgentSkills } from '../../api/v1alpha1/agent-skill.js';
import { Agents } from '../../api/v1alpha1/agent.js';
import { orUndefined } from '../../kube/errors.js';
import type { Cache, KubeApi } from '../../kube/types.js';
import type { AgentChild } from '../../projections/agent-child.js';
import { BY_AGENT, agentKey } from '../../projections/indexes.js';
import { evaluatedContent, skillDigest } from '../../templates/evaluated-content.js';
import { refOf } from '../common/finalizer.js';

export interface ContentDependencies {
  api: Pick<KubeApi, 'get'>;
  skills: Cache<AgentChild>;
}

/** One GET for the agent and one for each skill; undefined when there is no such agent. */
export async function contentOf(
  { api, skills }: ContentDependencies,
  { namespace, name }: { namespace: string; name: string },
  signal: AbortSignal,
): Promise<string | undefined> {
  const agent = await orUndefined(api.get(Agents, { namespace, name }, { signal }));
  if (agent === undefined) return undefined;
  const digests = new Map<string, string>();
  for (const { metadata } of skills.byIndex(BY_AGENT, agentKey(namespace, name))) {
    const skill = await orUndefined(api.get(AgentSkills, refOf(metadata), { signal }));
    const slug = slugOfChildName(metadata.name);
    if (skill !== undefined && slug !== undefined) digests.set(slug, skillDigest(skill.spec));
  }
  return evaluatedContent(agent.spec, digests);
}
