/** Who may see and change which template: drafts are of their workspace, published ones are everybody's. */
import { isSlug, workspaceNamespace } from '../../api/names.js';
import { AgentTemplates } from '../../api/v1alpha1/agent-template.js';
import type { AgentTemplate } from '../../api/v1alpha1/agent-template.js';
import { orUndefined } from '../../kube/errors.js';
import type { AgentDeps } from '../agents/agents.js';
import type { Caller } from '../keys/key-check.js';
import type { StartDeps } from '../runs/runs.js';
import type { ScopeDeps } from '../scope.js';
import type { TriggerDeps } from '../triggers/triggers.js';
import { UserError } from '../../api/user-error.js';
import { BY_LISTING, LISTED, projectTemplate } from '../../projections/agent-template.js';
import type { TemplateProjection } from '../../projections/agent-template.js';
import { BY_WORKSPACE } from '../../projections/indexes.js';
import { kubeCall, DNS_LABEL } from '../kube-call.js';
import { compare } from '../../runtime/compare.js';

export type TemplateDeps = AgentDeps & Pick<TriggerDeps, 'keyring'> & StartDeps;

/** Spec 1.7: templates are for accounts with an expert sandbox; checked before anything else. */
export function expectExpertSandbox({ caches }: Pick<ScopeDeps, 'caches'>, caller: Caller): void {
  if (caches.Workspace.get(caller.workspace)?.expertSandbox === true) return;
  throw new UserError(
    `templates need an expert sandbox account: set spec.expertSandbox: true on Workspace ${caller.workspace}`,
  );
}

export const TEMPLATE_NOT_FOUND =
  'template not found: this workspace sees no template with this templateId; list_templates shows them';

/** `<workspace>.<template>` */
export function templateIdOf({ workspace, name }: Pick<TemplateProjection, 'workspace' | 'name'>): string {
  return `${workspace}.${name}`;
}

function parseTemplateId(id: string): { workspace: string; name: string } | undefined {
  const [workspace, name, ...rest] = id.split('.');
  if (workspace === undefined || name === undefined || rest.length > 0) return undefined;
  return DNS_LABEL.test(workspace) && workspace.length <= 57 && isSlug(name) ? { workspace, name } : undefined;
}

/** Own ones and published ones of others; a draft of another workspace answers like an unknown one. */
export async function findTemplate(deps: ScopeDeps, caller: Caller, id: string): Promise<TemplateProjection> {
  const ref = parseTemplateId(id);
  if (ref === undefined) throw new UserError(TEMPLATE_NOT_FOUND);
  const place = { namespace: workspaceNamespace(ref.workspace), name: ref.name };
  const isOwn = ref.workspace === caller.workspace;
  const known = deps.caches.AgentTemplate.get(`${place.namespace}/${place.name}`);
  const template = known ?? (isOwn ? await readProjection(deps, place) : undefined);
  if (template === undefined || template.deleting || !(isOwn || isPublic(template))) {
    throw new UserError(TEMPLATE_NOT_FOUND);
  }
  return template;
}

async function readProjection(
  deps: ScopeDeps,
  place: { namespace: string; name: string },
): Promise<TemplateProjection | undefined> {
  const live = await readTemplate(deps, place);
  return live === undefined ? undefined : projectTemplate(live);
}

/** One GET; undefined when it is gone or being deleted. */
export async function readTemplate(
  deps: Pick<ScopeDeps, 'api' | 'clock'>,
  { namespace, name }: { namespace: string; name: string },
): Promise<AgentTemplate | undefined> {
  const live = await kubeCall(deps, (signal) =>
    orUndefined(deps.api.get(AgentTemplates, { namespace, name }, { signal })),
  );
  return live?.metadata.deletionTimestamp === undefined ? live : undefined;
}

/** A template of the caller's workspace; for a published one of another workspace the error says so. */
export async function findOwnTemplate(deps: ScopeDeps, caller: Caller, id: string): Promise<TemplateProjection> {
  const template = await findTemplate(deps, caller, id);
  if (template.workspace === caller.workspace) return template;
  throw new UserError('this template belongs to another workspace: it can be installed, not changed');
}

function isPublic(template: TemplateProjection): boolean {
  return template.listed && template.published.length > 0;
}

export type TemplateScope = 'own' | 'published' | 'all';

/** The templates of a scope, newest first. No request. */
export function templatesIn({ caches }: Pick<ScopeDeps, 'caches'>, caller: Caller, scope: TemplateScope) {
  const own = caches.AgentTemplate.byIndex(BY_WORKSPACE, caller.workspace);
  const listed = caches.AgentTemplate.byIndex(BY_LISTING, LISTED).filter(isPublic);
  const foreign = listed.filter(({ workspace }) => workspace !== caller.workspace);
  const found = { own, published: listed, all: [...own, ...foreign] }[scope];
  return found
    .filter(({ deleting }) => !deleting)
    .sort((a, b) => compare(b.createdAt, a.createdAt) || compare(templateIdOf(a), templateIdOf(b)));
}
