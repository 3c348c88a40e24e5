/** Changing and deleting agents (spec 4.2, 4.2.3). */
import { isSlug } from '../../api/names.js';
import { Agents } from '../../api/v1alpha1/agent.js';
import type { Agent, ModelControl } from '../../api/v1alpha1/agent.js';
import type { Provider } from '../../api/v1alpha1/common.js';
import { deleteChild } from './agent-children.js';
import { handleOwners, warningsOf } from './agents.js';
import { expectOutputSchema } from './output-schema.js';
import { changeAgent } from './change-agent.js';
import type { ChangeAgentDeps } from './change-agent.js';
import type { Caller } from '../keys/key-check.js';
import { sameJson } from '../../runtime/same-json.js';
import { agentRefOf, findAgent, idOf, isCommitted } from '../scope.js';
import { unconfirmedNote } from '../triggers/triggers.js';
import { UserError } from '../../api/user-error.js';
import type { ApiAgent } from '../../projections/agent.js';
import { refuseGitOps } from '../../api/gitops.js';

type ModelControlUpdate = { [Name in keyof ModelControl]: ModelControl[Name] | null };

/** Arguments of update_agent after their check; null = back to the default. */
export interface AgentUpdate extends ModelControlUpdate {
  name?: string | undefined;
  handle?: string | undefined;
  description?: string | null | undefined;
  soul?: string | undefined;
  provider?: Provider | undefined;
  model?: string | null | undefined;
  temperature?: number | null | undefined;
  stepLimit?: number | null | undefined;
  tools?: Partial<Record<string, boolean>> | undefined;
  selfImprovement?: Partial<Record<string, boolean>> | undefined;
  setup?: { required: boolean; prompt?: string | undefined } | undefined;
}

/** The result of update_agent: only the passed fields change. One GET, at most one PATCH. */
export async function updateAgent(deps: ChangeAgentDeps, caller: Caller, id: string, input: AgentUpdate) {
  if (input.handle !== undefined) expectHandle(input.handle);
  expectOutputSchema(input.outputSchema);
  const known = await findAgent(deps, caller, id);
  let updated: string[] = [];
  const agent = await changeAgent(deps, caller, known, (stored) => {
    const patch = changesOf(stored, input);
    updated = Object.keys(patch);
    if (patch['handle'] !== undefined) refuseTakenHandle(deps, caller, known, input.handle ?? '');
    return updated.length === 0 ? undefined : patch;
  });
  const { apiBox: box } = agentRefOf(deps, caller, id);
  return { agentId: idOf(known), updated, warnings: warningsOf(box, agent) };
}

/** Checks that a text can be a handle; the error says what a handle is. */
export function expectHandle(handle: string): void {
  if (isSlug(handle) && !handle.includes('--')) return;
  throw new UserError(
    'argument "handle" must have a-z, 0-9 and single hyphens inside, at most 36 characters, for example release-helper',
  );
}

function refuseTakenHandle(deps: ChangeAgentDeps, caller: Caller, agent: ApiAgent, handle: string): void {
  const owner = handleOwners(deps, caller).find((other) => other.handle === handle && other.uid !== agent.uid);
  if (owner === undefined) return;
  if (!isCommitted(deps.caches, owner)) {
    throw new UserError('argument "handle" is taken by an agent that is being installed: choose another');
  }
  throw new UserError(`argument "handle" is taken by agent ${idOf(owner)}: choose another, or change that agent first`);
}

/** The fields whose stored value changes, as a merge patch: null removes, `tools` and `selfImprovement` merge by key. */
export function changesOf({ spec, metadata }: Pick<Agent, 'spec' | 'metadata'>, input: AgentUpdate) {
  const now: Record<string, unknown> = {
    ...spec,
    handle: spec.handle ?? metadata.name,
    description: spec.description ?? '',
  };
  const patch: Record<string, unknown> = {};
  for (const [field, given] of Object.entries(input)) {
    if (given === undefined) continue;
    const wanted = wantedValue(field, given, now[field]);
    if (!sameJson(wanted ?? undefined, now[field])) patch[field] = replacing(field, wanted, now[field]);
  }
  return patch;
}

function wantedValue(field: string, given: unknown, now: unknown): unknown {
  if (field === 'description' && given === null) return '';
  if (field === 'tools' || field === 'selfImprovement') return { ...(now as object), ...(given as object) };
  return given;
}

/** A merge patch merges objects: what an object loses needs an explicit null. */
function replacing(field: string, wanted: unknown, now: unknown): unknown {
  return field === 'setup' || field === 'outputSchema' ? patchTo(wanted, now) : wanted;
}

function patchTo(wanted: unknown, now: unknown): unknown {
  if (!isObject(wanted) || !isObject(now)) return wanted;
  const lost = Object.keys(now).filter((name) => wanted[name] === undefined);
  const kept = Object.entries(wanted).map(([name, value]) => [name, patchTo(value, now[name])] as const);
  return { ...Object.fromEntries(lost.map((name) => [name, null])), ...Object.fromEntries(kept) };
}

function isObject(value: unknown): value is Readonly<Record<string, unknown>> {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}

/**
 * The result of delete_agent. The agent is gone for every tool and URL when this answers; its runs, triggers, schedules,
 * skills and notes are removed afterwards by the controller, once they are counted.
 */
export async function deleteAgent(deps: ChangeAgentDeps, caller: Caller, id: string) {
  const agent = await findAgent(deps, caller, id);
  refuseGitOps(agent);
  const confirmed = await deleteChild(deps, Agents, agent);
  return { deleted: idOf(agent), ...unconfirmedNote(confirmed) };
}
