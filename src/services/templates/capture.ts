/** Reading an agent with what belongs to it, to be kept in a template. */
import { orUndefined } from '../../kube/errors.js';
import { AgentSkills } from '../../api/v1alpha1/agent-skill.js';
import { Agents } from '../../api/v1alpha1/agent.js';
import { isoNow } from '../../runtime/clock.js';
import { toSnapshot } from '../../templates/snapshot.js';
import type { AgentSnapshot } from '../../templates/snapshot.js';
import { AGENT_NOT_FOUND, idOf } from '../scope.js';
import type { ScopeDeps } from '../scope.js';
import { UserError } from '../../api/user-error.js';
import type { ApiAgent } from '../../projections/agent.js';
import { kubeCall } from '../kube-call.js';
import { expectOutputSchema } from '../agents/output-schema.js';
import { triggersOf, schedulesOf, skillsOf } from '../agents/find-child.js';

/** One GET for the agent and one for each skill; schedules and triggers are in the cache whole. */
export async function captureAgent(deps: ScopeDeps, known: ApiAgent, id: string): Promise<AgentSnapshot> {
  const { namespace, name } = known;
  const agent = await kubeCall(deps, (signal) => orUndefined(deps.api.get(Agents, { namespace, name }, { signal })));
  if (agent === undefined || agent.metadata.deletionTimestamp !== undefined) throw new UserError(AGENT_NOT_FOUND);
  const parts = {
    skills: await captureSkills(deps, known),
    schedules: schedulesOf(deps, known).map(
      ({ slug, displayName, description, body, timezone, enabled, cron, runAt }) => ({
        slug,
        spec: {
          name: displayName,
          description,
          body,
          timezone,
          enabled,
          ...(cron === undefined ? {} : { cron }),
          ...(runAt === undefined ? {} : { runAt }),
        },
      }),
    ),
    triggers: triggersOf(deps, known).map(
      ({ slug, displayName, description, body, methods, enabled, dedupeHeader, verify }) => ({
        slug,
        spec: {
          name: displayName,
          description,
          body,
          methods: [...methods],
          enabled,
          ...(dedupeHeader === undefined ? {} : { dedupeHeader }),
          ...(verify === undefined ? {} : { verify }),
        },
      }),
    ),
  };
  expectOutputSchema(agent.spec.outputSchema, `outputSchema of agent ${idOf(known)}`);
  return toSnapshot(agent, parts, { id, agentId: idOf(known), capturedAt: isoNow(deps.clock) });
}

/** A skill that is deleted while it is read is not part of the agent any more. */
async function captureSkills(deps: ScopeDeps, agent: ApiAgent) {
  const skills = await Promise.all(
    skillsOf(deps, agent).map(async ({ slug, namespace, name }) => {
      const skill = await kubeCall(deps, (signal) =>
        orUndefined(deps.api.get(AgentSkills, { namespace, name }, { signal })),
      );
      return skill === undefined ? [] : [{ slug, spec: skill.spec }];
    }),
  );
  return skills.flat();
}
