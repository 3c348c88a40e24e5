/** Changes a template without losing anybody else's change: new content first, then one patch of the version that was read. */
import { ANNOTATION_REQUESTED_BY } from '../../api/labels.js';
import { AgentTemplates } from '../../api/v1alpha1/agent-template.js';
import type { AgentTemplate } from '../../api/v1alpha1/agent-template.js';
import { isConflict, isNotFound, isRefused } from '../../kube/errors.js';
import { isoNow } from '../../runtime/clock.js';
import type { AgentSnapshot } from '../../templates/snapshot.js';
import type { Caller } from '../keys/key-check.js';
import { UserError } from '../../api/user-error.js';
import { ContentGoneError, deleteContent, placeOf, readContent, writeContent } from './content-store.js';
import { TEMPLATE_NOT_FOUND, readTemplate } from './find.js';
import type { TemplateDeps } from './find.js';
import { contentsOf } from '../../templates/contents.js';
import { projectTemplate } from '../../projections/agent-template.js';
import type { TemplateProjection } from '../../projections/agent-template.js';
import { kubeCall } from '../kube-call.js';
import { refuseGitOps } from '../../api/gitops.js';

const MAX_ATTEMPTS = 8;

export interface TemplateChange {
  /** JSON merge patch of the spec. */
  spec?: Partial<AgentTemplate['spec']>;
  /** A new content for the draft. */
  agents?: readonly AgentSnapshot[];
}

/** The template as it is stored; reads its draft when asked. */
export interface TemplateState {
  template: TemplateProjection;
  spec: AgentTemplate['spec'];
  draft: () => Promise<AgentSnapshot[]>;
}

type ChangeDeps = Pick<TemplateDeps, 'api' | 'clock' | 'barrier'>;

/**
 * One GET, the parts, and one PATCH when `decide` returns a change; again after a conflict. Answers with the template when
 * every API pod has seen it. Contents that nothing points to any more are removed afterwards.
 */
export async function changeTemplate(
  deps: ChangeDeps,
  caller: Caller,
  known: TemplateProjection,
  decide: (state: TemplateState) => Promise<TemplateChange | undefined> | TemplateChange | undefined,
): Promise<TemplateProjection> {
  for (let attempt = 1; ; attempt++) {
    const stored = await readTemplate(deps, known);
    if (stored === undefined || stored.metadata.uid !== known.uid) throw new UserError(TEMPLATE_NOT_FOUND);
    const template = projectTemplate(stored);
    refuseGitOps(template);
    try {
      const draft = () => readContent(deps, known, stored.spec.draft);
      const change = await decide({ template, spec: stored.spec, draft });
      return change === undefined ? template : await apply(deps, caller, stored, change);
    } catch (error) {
      const isLate = isConflict(error) || error instanceof ContentGoneError;
      if (!isLate || attempt === MAX_ATTEMPTS) throw error;
    }
  }
}

async function apply(
  deps: ChangeDeps,
  caller: Caller,
  template: AgentTemplate,
  change: TemplateChange,
): Promise<TemplateProjection> {
  const place = placeOf(template);
  const content = change.agents === undefined ? undefined : await writeContent(deps, template, change.agents);
  const { uid, resourceVersion } = template.metadata;
  const body = {
    metadata: { uid, resourceVersion, annotations: { [ANNOTATION_REQUESTED_BY]: caller.keyPrefix } },
    spec: {
      ...change.spec,
      ...(content === undefined ? {} : { draft: content }),
      ...(isEdit(change) ? { updatedAt: isoNow(deps.clock) } : {}),
    },
  };
  try {
    const written = await kubeCall(deps, (signal) =>
      deps.api.patch(AgentTemplates, place, body, { type: 'merge', signal }),
    );
    await deps.barrier.passed({
      kind: AgentTemplates.kind,
      resourceVersion: written.metadata.resourceVersion ?? '',
    });
    await removeUnused(deps, template, written);
    return projectTemplate(written);
  } catch (error) {
    // After a clear refusal nothing points to the new content; after a lost answer, or one of 5xx, something may.
    if (content !== undefined && isRefused(error)) await deleteContent(deps, place, content);
    if (isNotFound(error)) throw new UserError(TEMPLATE_NOT_FOUND);
    throw error;
  }
}

/** Publishing does not change the draft. */
function isEdit({ agents, spec }: TemplateChange): boolean {
  return (
    agents !== undefined ||
    ['name', 'description', 'category', 'tags', 'requiredEvals'].some((field) => field in (spec ?? {}))
  );
}

/** Contents that the former object pointed to and the new one does not. */
async function removeUnused(deps: ChangeDeps, before: AgentTemplate, after: AgentTemplate): Promise<void> {
  const used = new Set(contentsOf(after).map(({ content }) => content));
  for (const ref of contentsOf(before)) {
    if (!used.has(ref.content)) await deleteContent(deps, placeOf(after), ref);
  }
}
