/** Making and editing templates: all of it happens in the draft. */
import { API_VERSION } from '../../api/define-resource.js';
import { ANNOTATION_CREATED_AT, ANNOTATION_REQUESTED_BY } from '../../api/labels.js';
import { slugFromName, workspaceNamespace } from '../../api/names.js';
import { AgentTemplateSpec, AgentTemplates, MAX_TEMPLATE_AGENTS } from '../../api/v1alpha1/agent-template.js';
import type { AgentTemplate } from '../../api/v1alpha1/agent-template.js';
import { isAlreadyExists, isNotFound } from '../../kube/errors.js';
import { isoNow } from '../../runtime/clock.js';
import { AgentSnapshot } from '../../templates/snapshot.js';
import { deleteChild } from '../agents/agent-children.js';
import { freeHandle } from '../agents/agents.js';
import type { Caller } from '../keys/key-check.js';
import { findAgent } from '../scope.js';
import { sameJson } from '../../runtime/same-json.js';
import { expectOutputSchema } from '../agents/output-schema.js';
import { changesOf, expectHandle } from '../agents/update-agent.js';
import type { AgentUpdate } from '../agents/update-agent.js';
import { UserError } from '../../api/user-error.js';
import { captureAgent } from './capture.js';
import { changeTemplate } from './change-template.js';
import { EMPTY_CONTENT, deleteContent } from './content-store.js';
import { findOwnTemplate, templateIdOf } from './find.js';
import type { TemplateDeps } from './find.js';
import { templateAgentRecord, templateRecord } from './records.js';
import { contentsOf } from '../../templates/contents.js';
import { projectTemplate } from '../../projections/agent-template.js';
import type { TemplateProjection } from '../../projections/agent-template.js';
import type { ApiAgent } from '../../projections/agent.js';
import { kubeCall } from '../kube-call.js';
import { refuseGitOps } from '../../api/gitops.js';

const MAX_NAME_ATTEMPTS = 50;

export interface NewTemplate {
  name: string;
  description?: string | undefined;
  category?: string | undefined;
  tags?: readonly string[] | undefined;
  requiredEvals?: readonly string[] | undefined;
  agentIds: readonly string[];
}

/** The result of create_template: all agents are captured or there is no template. */
export async function createTemplate(deps: TemplateDeps, caller: Caller, input: NewTemplate) {
  const agents = await capturedAgents(deps, caller, input.agentIds);
  const created = await createUnderFreeName(deps, caller, input);
  const template = await fillOrRemove(deps, caller, created, agents);
  return {
    ...templateRecord(deps, caller, template),
    agents: agents.map(({ id, spec, handle }) => ({ templateAgentId: id, name: spec.name, handle })),
  };
}

async function capturedAgents(deps: TemplateDeps, caller: Caller, ids: readonly string[]): Promise<AgentSnapshot[]> {
  const double = ids.find((id, index) => ids.indexOf(id) !== index);
  if (double !== undefined) throw new UserError('argument "agentIds" names an agent twice');
  const agents: ApiAgent[] = [];
  for (const id of ids) agents.push(await findAgent(deps, caller, id));
  const snapshots: AgentSnapshot[] = [];
  for (const agent of agents) {
    const captured = await captureAgent(deps, agent, newTemplateAgentId(deps, snapshots));
    refuseSameHandle(snapshots, captured);
    snapshots.push(captured);
  }
  return snapshots;
}

/** Two Boxes may have agents of one handle that were made by hand, or at the same moment. */
function refuseSameHandle(others: readonly AgentSnapshot[], { handle, sourceAgentId }: AgentSnapshot): void {
  const owner = others.find((other) => other.handle === handle);
  if (owner === undefined) return;
  throw new UserError(
    `agents ${owner.sourceAgentId} and ${sourceAgentId} have the same handle ${handle}: change that of one with update_agent first`,
  );
}

function newTemplateAgentId(deps: TemplateDeps, others: readonly AgentSnapshot[]): string {
  for (;;) {
    const id = `ta-${deps.randomHex(4)}`;
    if (!others.some((other) => other.id === id)) return id;
  }
}

async function createUnderFreeName(deps: TemplateDeps, caller: Caller, input: NewTemplate): Promise<AgentTemplate> {
  const base = slugFromName(input.name) || `template-${deps.randomHex(2)}`;
  const taken = new Set<string>();
  for (let attempt = 0; attempt < MAX_NAME_ATTEMPTS; attempt++) {
    const name = freeHandle(base, taken);
    try {
      const template = newTemplate(deps, caller, name, input);
      return await kubeCall(deps, (signal) => deps.api.create(AgentTemplates, template, { signal }));
    } catch (error) {
      if (isNotFound(error)) {
        throw new UserError('this workspace is not ready: its namespace is not there yet; try again in a moment');
      }
      if (!isAlreadyExists(error)) throw error;
      taken.add(name);
    }
  }
  throw new UserError('no free id for this name: choose another name');
}

function newTemplate(deps: TemplateDeps, caller: Caller, name: string, input: NewTemplate): AgentTemplate {
  return {
    apiVersion: API_VERSION,
    kind: AgentTemplates.kind,
    metadata: {
      namespace: workspaceNamespace(caller.workspace),
      name,
      annotations: { [ANNOTATION_REQUESTED_BY]: caller.keyPrefix, [ANNOTATION_CREATED_AT]: isoNow(deps.clock) },
    },
    spec: AgentTemplateSpec.parse({
      name: input.name,
      description: input.description,
      category: input.category,
      tags: input.tags,
      requiredEvals: input.requiredEvals,
      draft: EMPTY_CONTENT,
      updatedAt: isoNow(deps.clock),
    }),
  };
}

async function fillOrRemove(
  deps: TemplateDeps,
  caller: Caller,
  created: AgentTemplate,
  agents: readonly AgentSnapshot[],
): Promise<TemplateProjection> {
  const template = projectTemplate(created);
  if (agents.length === 0) {
    const { resourceVersion = '' } = created.metadata;
    await deps.barrier.passed({ kind: AgentTemplates.kind, resourceVersion });
    return template;
  }
  try {
    return await changeTemplate(deps, caller, template, () => ({ agents }));
  } catch (error) {
    await deleteChild(deps, AgentTemplates, template);
    throw error;
  }
}

/** Arguments of update_template after their check; null empties. */
export interface TemplateUpdate {
  name?: string | undefined;
  description?: string | null | undefined;
  category?: string | null | undefined;
  tags?: readonly string[] | undefined;
  requiredEvals?: readonly string[] | undefined;
}

/** The result of update_template: the draft only. One GET, at most one PATCH. */
export async function updateTemplate(deps: TemplateDeps, caller: Caller, id: string, input: TemplateUpdate) {
  const known = await findOwnTemplate(deps, caller, id);
  let updated: string[] = [];
  await changeTemplate(deps, caller, known, ({ spec }) => {
    const wanted = Object.entries(input).filter(([, value]) => value !== undefined);
    const changed = wanted
      .map(([field, value]) => [field, value ?? ''] as const)
      .filter(([field, value]) => !sameJson(value, spec[field as keyof TemplateUpdate]));
    updated = changed.map(([field]) => field);
    return updated.length === 0 ? undefined : { spec: Object.fromEntries(changed) };
  });
  return { templateId: templateIdOf(known), updated };
}

/** The result of delete_template; agents that were installed from it stay. */
export async function deleteTemplate(deps: TemplateDeps, caller: Caller, id: string) {
  const known = await findOwnTemplate(deps, caller, id);
  refuseGitOps(known);
  await deleteChild(deps, AgentTemplates, known);
  for (const ref of contentsOf({ spec: { draft: known.draft, published: known.published } })) {
    await deleteContent(deps, known, ref);
  }
  return { deleted: templateIdOf(known) };
}

/** The result of add_template_agent. */
export async function addTemplateAgent(deps: TemplateDeps, caller: Caller, id: string, agentId: string) {
  const agent = await findAgent(deps, caller, agentId);
  const known = await findOwnTemplate(deps, caller, id);
  let added: AgentSnapshot | undefined;
  await changeTemplate(deps, caller, known, async ({ draft }) => {
    const agents = await draft();
    const captured = agents.find(({ sourceUid }) => sourceUid === agent.uid);
    if (captured !== undefined) {
      throw new UserError(
        `the agent is in the template already: use update_template_agent with templateAgentId ${captured.id} and recapture true`,
      );
    }
    if (agents.length >= MAX_TEMPLATE_AGENTS) {
      throw new UserError(`a template has at most ${MAX_TEMPLATE_AGENTS} agents`);
    }
    added = await captureAgent(deps, agent, newTemplateAgentId(deps, agents));
    expectFreeHandle(agents, added);
    return { agents: [...agents, added] };
  });
  if (added === undefined) throw new Error('the template was not changed');
  return templateAgentRecord(added);
}

function expectFreeHandle(agents: readonly AgentSnapshot[], agent: AgentSnapshot): void {
  const owner = agents.find(({ handle, id }) => handle === agent.handle && id !== agent.id);
  if (owner === undefined) return;
  throw new UserError(
    `the template has an agent with handle ${agent.handle} already (templateAgentId ${owner.id}): change that handle first`,
  );
}

export interface TemplateAgentUpdate extends AgentUpdate {
  recapture: boolean;
}

/** The result of update_template_agent: first captured again when asked, then the fields. */
export async function updateTemplateAgent(
  deps: TemplateDeps,
  caller: Caller,
  ids: { templateId: string; templateAgentId: string },
  { recapture, ...fields }: TemplateAgentUpdate,
) {
  if (fields.handle !== undefined) expectHandle(fields.handle);
  expectOutputSchema(fields.outputSchema);
  const known = await findOwnTemplate(deps, caller, ids.templateId);
  let updated: string[] = [];
  await changeTemplate(deps, caller, known, async ({ draft }) => {
    const agents = await draft();
    const before = findSnapshot(agents, ids.templateAgentId);
    const fresh = recapture ? await recaptured(deps, caller, before) : before;
    const after = withFields(fresh, fields);
    expectFreeHandle(agents, after);
    updated = changedFields(before, after);
    if (updated.length === 0) return undefined;
    return { agents: agents.map((agent) => (agent.id === after.id ? after : agent)) };
  });
  return { templateId: templateIdOf(known), templateAgentId: ids.templateAgentId, updated };
}

function findSnapshot(agents: readonly AgentSnapshot[], id: string): AgentSnapshot {
  const found = agents.find((agent) => agent.id === id);
  if (found !== undefined) return found;
  const known = agents.map((agent) => `${agent.id} (${agent.handle})`).join(', ');
  throw new UserError(
    `template agent not found: no agent of the template has this templateAgentId; ${known === '' ? 'it has none' : `it has: ${known}`}`,
  );
}

/** The source has to be the agent that was captured, not another one of the same name. */
async function recaptured(deps: TemplateDeps, caller: Caller, before: AgentSnapshot): Promise<AgentSnapshot> {
  const source = await findAgent(deps, caller, before.sourceAgentId).catch((error: unknown) => {
    if (error instanceof UserError) return undefined;
    throw error;
  });
  if (source === undefined || source.uid !== before.sourceUid) {
    throw new UserError('the source agent is gone: the template agent can be edited, but not captured again');
  }
  return captureAgent(deps, source, before.id);
}

function withFields(snapshot: AgentSnapshot, fields: AgentUpdate): AgentSnapshot {
  const { handle } = snapshot;
  const patch = changesOf({ spec: { ...snapshot.spec, handle, paused: false }, metadata: { name: handle } }, fields);
  const { handle: renamed, setup, ...spec } = patch;
  // A patch names what the old schema loses; here is nobody who would apply it.
  const schema = 'outputSchema' in patch ? { outputSchema: fields.outputSchema } : {};
  const kept = Object.entries({ ...snapshot.spec, ...spec, ...schema }).filter(([, value]) => value !== null);
  return AgentSnapshot.parse({
    ...snapshot,
    handle: renamed ?? handle,
    spec: { ...Object.fromEntries(kept), ...(setup === undefined ? {} : { setup: withoutNulls(setup as object) }) },
  });
}

function withoutNulls(value: object): object {
  return Object.fromEntries(Object.entries(value).filter(([, inner]) => inner !== null));
}

/** Fields that differ, those that no record shows (approvals, budget) as well; when it was captured is none of them. */
function changedFields(before: AgentSnapshot, after: AgentSnapshot): string[] {
  const [was, is] = [fieldsOf(before), fieldsOf(after)];
  const fields = new Set([...Object.keys(is), ...Object.keys(was)]);
  return [...fields].filter((field) => field !== 'capturedAt' && !sameJson(was[field], is[field]));
}

/** By the names of the record. */
function fieldsOf(snapshot: AgentSnapshot): Record<string, unknown> {
  const { spec, skills, triggers } = snapshot;
  return { ...templateAgentRecord(snapshot), ...spec, skills, triggers };
}

/** The result of remove_template_agent; the source agent is untouched. */
export async function removeTemplateAgent(
  deps: TemplateDeps,
  caller: Caller,
  { templateId, templateAgentId }: { templateId: string; templateAgentId: string },
) {
  const known = await findOwnTemplate(deps, caller, templateId);
  await changeTemplate(deps, caller, known, async ({ draft }) => {
    const agents = await draft();
    findSnapshot(agents, templateAgentId);
    return { agents: agents.filter(({ id }) => id !== templateAgentId) };
  });
  return { templateId: templateIdOf(known), removed: templateAgentId };
}
