/** The triggers, schedules and skills of an agent: all of them, or one by its slug. */
import { childName, isSlug } from '../../api/names.js';
import type { KubeObject } from '../../api/meta.js';
import { UserError } from '../../api/user-error.js';
import { AgentSchedules } from '../../api/v1alpha1/agent-schedule.js';
import { AgentSkills } from '../../api/v1alpha1/agent-skill.js';
import { AgentTriggers } from '../../api/v1alpha1/agent-trigger.js';
import { projectApiSchedule } from '../../projections/agent-schedule.js';
import type { ApiSchedule } from '../../projections/agent-schedule.js';
import { projectApiSkill } from '../../projections/agent-skill.js';
import type { ApiSkill } from '../../projections/agent-skill.js';
import { projectApiTrigger } from '../../projections/agent-trigger.js';
import type { ApiTrigger } from '../../projections/agent-trigger.js';
import type { ApiAgent } from '../../projections/agent.js';
import { BY_AGENT, agentKey } from '../../projections/indexes.js';
import { cachedOrLive } from '../kube-call.js';
import type { Source } from '../kube-call.js';
import { nearNames } from '../near-names.js';
import type { ScopeDeps } from '../scope.js';
import { compare } from '../../runtime/compare.js';

/** The triggers of an agent that are not being deleted, by slug. */
export function triggersOf({ caches }: Pick<ScopeDeps, 'caches'>, agent: ApiAgent): ApiTrigger[] {
  return bySlug(caches.AgentTrigger.byIndex(BY_AGENT, agentKey(agent.namespace, agent.name)));
}

/** The trigger of an agent by its slug. */
export function findTrigger(deps: ScopeDeps, agent: ApiAgent, slug: string): Promise<ApiTrigger> {
  const source = { cache: deps.caches.AgentTrigger, type: AgentTriggers, project: projectApiTrigger };
  return findChild(deps, agent, slug, { ...source, kind: 'trigger', known: triggersOf });
}

/** The schedules of an agent that are not being deleted, by slug. */
export function schedulesOf({ caches }: Pick<ScopeDeps, 'caches'>, agent: ApiAgent): ApiSchedule[] {
  return bySlug(caches.AgentSchedule.byIndex(BY_AGENT, agentKey(agent.namespace, agent.name)));
}

/** The skills of an agent that are not being deleted, by slug. */
export function skillsOf({ caches }: Pick<ScopeDeps, 'caches'>, agent: ApiAgent): ApiSkill[] {
  return bySlug(caches.AgentSkill.byIndex(BY_AGENT, agentKey(agent.namespace, agent.name)));
}

function bySlug<V extends { slug: string; deleting: boolean }>(children: readonly V[]): V[] {
  return children.filter((child) => !child.deleting).sort((a, b) => compare(a.slug, b.slug));
}

/** The schedule of an agent by its slug. */
export function findSchedule(deps: ScopeDeps, agent: ApiAgent, slug: string): Promise<ApiSchedule> {
  const source = { cache: deps.caches.AgentSchedule, type: AgentSchedules, project: projectApiSchedule };
  return findChild(deps, agent, slug, { ...source, kind: 'schedule', known: schedulesOf });
}

/** The skill of an agent by its slug. */
export function findSkill(deps: ScopeDeps, agent: ApiAgent, slug: string): Promise<ApiSkill> {
  const source = { cache: deps.caches.AgentSkill, type: AgentSkills, project: projectApiSkill };
  return findChild(deps, agent, slug, { ...source, kind: 'skill', known: skillsOf });
}

interface ChildSource<T extends KubeObject, V> extends Source<T, V> {
  kind: string;
  known(deps: ScopeDeps, agent: ApiAgent): readonly V[];
}

async function findChild<T extends KubeObject, V extends { slug: string; deleting: boolean }>(
  deps: ScopeDeps,
  agent: ApiAgent,
  slug: string,
  source: ChildSource<T, V>,
): Promise<V> {
  const child = isSlug(slug)
    ? await cachedOrLive(deps, source, agent.namespace, childName(agent.name, slug))
    : undefined;
  if (child === undefined || child.deleting) {
    throw new UserError(slugNotFound(source.kind, slug, source.known(deps, agent)));
  }
  return child;
}

/** The message for an unknown slug: it lists the existing ones, the nearest first. */
export function slugNotFound(kind: string, slug: string, known: readonly { slug: string }[]): string {
  const names = nearNames(
    slug,
    known.map((child) => child.slug),
  );
  return `${kind} not found: this agent has no ${kind} with this slug; ${names === '' ? 'it has none' : `its slugs are: ${names}`}`;
}
