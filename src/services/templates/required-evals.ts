/** Evals that must have passed, for what a template holds, before it is published. */
import { boxNamespace, parseAgentId } from '../../api/names.js';
import { AgentEvals } from '../../api/v1alpha1/agent-eval.js';
import type { AgentEval } from '../../api/v1alpha1/agent-eval.js';
import { orUndefined } from '../../kube/errors.js';
import { snapshotContent } from '../../templates/evaluated-content.js';
import type { AgentSnapshot } from '../../templates/snapshot.js';
import type { Finding } from '../../templates/validate.js';
import type { Caller } from '../keys/key-check.js';
import { kubeCall } from '../kube-call.js';
import type { ScopeDeps } from '../scope.js';

export interface Demanding {
  requiredEvals: readonly string[];
  agents: readonly AgentSnapshot[];
}

/** What is wrong with each of them. One GET an eval. */
export async function evalProblems(
  deps: ScopeDeps,
  caller: Caller,
  { requiredEvals, agents }: Demanding,
): Promise<Finding[]> {
  const problems: Finding[] = [];
  for (const id of requiredEvals) {
    const message = await problemOf(deps, caller, id, agents);
    if (message !== undefined) problems.push({ path: `requiredEvals.${id}`, message });
  }
  return problems;
}

async function problemOf(
  deps: ScopeDeps,
  caller: Caller,
  id: string,
  agents: readonly AgentSnapshot[],
): Promise<string | undefined> {
  // An eval is named as an agent is: <box>.<name>.
  const ref = parseAgentId(id);
  const box = ref === undefined ? undefined : deps.caches.Box.get(ref.box);
  const isOwn = ref !== undefined && box !== undefined && !box.deleting && box.workspace === caller.workspace;
  const found = isOwn ? await readEval(deps, { namespace: boxNamespace(ref.box), name: ref.agent }) : undefined;
  if (!isOwn || found === undefined) {
    return 'there is no such AgentEval in a Box of this workspace: create it, or take it out of requiredEvals with update_template';
  }
  const snapshot = agents.find(({ sourceAgentId }) => sourceAgentId === `${ref.box}.${found.spec.agent}`);
  if (snapshot === undefined) return `it is about agent ${found.spec.agent}, which is not in the template`;
  return problemOfEnd(found) ?? problemOfModels(found, snapshot) ?? (await problemOfContent(found, snapshot));
}

function readEval(deps: ScopeDeps, ref: { namespace: string; name: string }): Promise<AgentEval | undefined> {
  return kubeCall(deps, (signal) => orUndefined(deps.api.get(AgentEvals, ref, { signal })));
}

function problemOfEnd({ metadata, status }: AgentEval): string | undefined {
  const { phase, generation, passed = 0, total = 0 } = status ?? {};
  if (phase === 'passed' && generation === metadata.generation) return undefined;
  if (phase === 'failed') return `it has not passed: ${passed} of ${total} cases did`;
  return `it has not ended: ${passed} of ${total} cases passed until now`;
}

/** What answered must be the model that the template gives the agent. */
function problemOfModels({ spec }: AgentEval, { spec: agent }: AgentSnapshot): string | undefined {
  if (spec.cases.some(({ recording }) => recording !== undefined)) {
    return 'it has a case with a recording, which says nothing about what the agent does now: leave the recording out';
  }
  const { models = [] } = spec;
  const isOwn = ({ provider = agent.provider, name }: (typeof models)[number]) =>
    provider === agent.provider && name === agent.model;
  if (models.length === 0 || models.some(isOwn)) return undefined;
  return 'its spec.models has not the model of the agent in the template: add it, or leave spec.models out';
}

async function problemOfContent({ status }: AgentEval, snapshot: AgentSnapshot): Promise<string | undefined> {
  const again = 'run it again (raise its spec.round)';
  if (status?.content === undefined) return `the agent was changed while it ran: ${again}`;
  if (status.content === (await snapshotContent(snapshot))) return undefined;
  return `it passed for other settings or skills of agent ${snapshot.handle} than the template has: capture the agent again with update_template_agent and recapture true, or ${again}`;
}
