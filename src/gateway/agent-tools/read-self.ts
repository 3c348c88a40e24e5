/** The agent of a run as it is now, for tools that change it. */
import { Agents, type Agent } from '../../api/v1alpha1/agent.js';
import { isNotFound } from '../../kube/errors.js';
import type { KubeApi } from '../../kube/types.js';
import { ToolRefusal, type ToolContext } from './tool-context.js';

/** Throws a {@link ToolRefusal} when it is gone or going. */
export async function readSelf(api: Pick<KubeApi, 'get'>, { namespace, agent }: ToolContext): Promise<Agent> {
  try {
    const found = await api.get(Agents, { namespace, name: agent.name });
    if (found.metadata.uid === agent.uid && found.metadata.deletionTimestamp === undefined) return found;
  } catch (error) {
    if (!isNotFound(error)) throw error;
  }
  throw new ToolRefusal('this agent is being deleted');
}

/** The precondition of a write. */
export function versionOf({ metadata: { uid, resourceVersion } }: Agent) {
  return { uid, resourceVersion };
}
