/** Changes an agent without losing anybody else's change: read, decide, patch the version that was read. */
import { ANNOTATION_REQUESTED_BY } from '../../api/labels.js';
import { Agents } from '../../api/v1alpha1/agent.js';
import type { Agent } from '../../api/v1alpha1/agent.js';
import { isConflict, isNotFound, orUndefined } from '../../kube/errors.js';
import type { Caller } from '../keys/key-check.js';
import { AGENT_NOT_FOUND } from '../scope.js';
import type { ScopeDeps } from '../scope.js';
import { UserError } from '../../api/user-error.js';
import type { WriteBarrier } from '../write-barrier.js';
import { projectApiAgent } from '../../projections/agent.js';
import type { ApiAgent } from '../../projections/agent.js';
import { kubeCall } from '../kube-call.js';
import { refuseGitOps } from '../../api/gitops.js';

/** Attempts when several writers, the controller included, change one agent at the same time: the late one reads again. */
const MAX_ATTEMPTS = 8;

export interface ChangeAgentDeps extends ScopeDeps {
  barrier: WriteBarrier;
}

/** A JSON merge patch of the spec (null removes); undefined when nothing is to be written. */
export type SpecPatch = Record<string, unknown> | undefined;

/**
 * One GET, and one PATCH when `decide` returns a patch; both again after a conflict. Answers when every API pod has seen it.
 * `decide` may throw a UserError; it gets the agent as it is stored.
 */
export async function changeAgent(
  deps: ChangeAgentDeps,
  caller: Caller,
  known: ApiAgent,
  decide: (agent: Agent) => SpecPatch,
): Promise<Agent> {
  const ref = { namespace: known.namespace, name: known.name };
  for (let attempt = 1; ; attempt++) {
    const agent = await kubeCall(deps, (signal) => orUndefined(deps.api.get(Agents, ref, { signal })));
    if (agent === undefined || agent.metadata.deletionTimestamp !== undefined || agent.metadata.uid !== known.uid) {
      throw new UserError(AGENT_NOT_FOUND);
    }
    refuseGitOps(projectApiAgent(agent));
    const spec = decide(agent);
    if (spec === undefined) return agent;
    const { uid, resourceVersion } = agent.metadata;
    const metadata = { uid, resourceVersion, annotations: { [ANNOTATION_REQUESTED_BY]: caller.keyPrefix } };
    try {
      const written = await kubeCall(deps, (signal) =>
        deps.api.patch(Agents, ref, { metadata, spec }, { type: 'merge', signal }),
      );
      await deps.barrier.passed({ kind: Agents.kind, resourceVersion: written.metadata.resourceVersion ?? '' });
      return written;
    } catch (error) {
      if (isNotFound(error)) throw new UserError(AGENT_NOT_FOUND);
      if (!isConflict(error) || attempt === MAX_ATTEMPTS) throw error;
    }
  }
}
