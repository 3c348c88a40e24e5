/** Checking, publishing and unpublishing templates. */
import { MAX_TEMPLATE_VERSIONS } from '../../api/v1alpha1/agent-template.js';
import type { AgentTemplate } from '../../api/v1alpha1/agent-template.js';
import { whyUnavailable } from '../../models/availability.js';
import { isoNow } from '../../runtime/clock.js';
import { checkTemplate } from '../../templates/validate.js';
import type { CheckContext } from '../../templates/validate.js';
import { isInCatalog, notInCatalog } from '../connectors/connectors.js';
import type { Caller } from '../keys/key-check.js';
import { boxesOf } from '../scope.js';
import type { ScopeDeps } from '../scope.js';
import { UserError } from '../../api/user-error.js';
import { changeTemplate } from './change-template.js';
import type { TemplateState } from './change-template.js';
import { findOwnTemplate, templateIdOf } from './find.js';
import type { TemplateDeps } from './find.js';
import { readVersion } from './read.js';
import { isUnchanged, latestOf } from './records.js';
import { evalProblems } from './required-evals.js';
import { isoTime } from '../../api/time.js';

/** The result of validate_template: the draft. */
export async function validateTemplate(deps: ScopeDeps, caller: Caller, id: string) {
  const template = await findOwnTemplate(deps, caller, id);
  const agents = await readVersion(deps, template, template.draft);
  const check = { description: template.description, agents };
  const { problems, warnings } = await checkTemplate(check, contextOf(deps, caller));
  problems.push(...(await evalProblems(deps, caller, { requiredEvals: template.requiredEvals, agents })));
  return { templateId: templateIdOf(template), valid: problems.length === 0, problems, warnings };
}

function contextOf(deps: ScopeDeps, caller: Caller): CheckContext {
  const boxes = boxesOf(deps, caller.workspace);
  return {
    unknownConnector: (slug) => (isInCatalog(deps, slug) ? undefined : notInCatalog(deps, slug)),
    needsSecrets: (slug) => (deps.caches.Connector.get(slug)?.secrets.length ?? 0) > 0,
    whyUnavailable: ({ provider }) => {
      const reasons = boxes.map((box) => whyUnavailable(box, provider));
      return reasons.includes(undefined) ? undefined : reasons[0];
    },
  };
}

/** The result of publish_template: the draft becomes an immutable version; an unchanged one keeps its version. */
export async function publishTemplate(deps: TemplateDeps, caller: Caller, id: string) {
  const known = await findOwnTemplate(deps, caller, id);
  const template = await changeTemplate(deps, caller, known, async (state) => {
    await expectValid(deps, caller, state);
    if (!isUnchanged(state.template)) return { spec: nextVersion(deps, state.spec) };
    return state.template.listed ? undefined : { spec: { listed: true } };
  });
  const latest = latestOf(template);
  return {
    templateId: templateIdOf(template),
    status: 'published',
    version: latest?.version ?? 0,
    publishedAt: latest === undefined ? null : isoTime(latest.publishedAt),
  };
}

async function expectValid(deps: TemplateDeps, caller: Caller, { spec, draft }: TemplateState): Promise<void> {
  const agents = await draft();
  const { problems } = await checkTemplate({ description: spec.description, agents }, contextOf(deps, caller));
  problems.push(...(await evalProblems(deps, caller, { requiredEvals: spec.requiredEvals ?? [], agents })));
  if (problems.length === 0) return;
  const shown = problems.slice(0, 20).map(({ path, message }) => `${path}: ${message}`);
  const more = problems.length > shown.length ? `; and ${problems.length - shown.length} more` : '';
  throw new UserError(`the template cannot be published: ${shown.join('; ')}${more}`);
}

/** The content is not copied: a version points to what the draft pointed to. */
function nextVersion(deps: Pick<TemplateDeps, 'clock'>, spec: AgentTemplate['spec']): Partial<AgentTemplate['spec']> {
  const { name, description, category, tags, draft, published } = spec;
  const version = (published.at(-1)?.version ?? 0) + 1;
  const next = { ...draft, version, publishedAt: isoNow(deps.clock), name, description, category, tags };
  return { published: [...published, next].slice(-MAX_TEMPLATE_VERSIONS), listed: true };
}

/** The result of unpublish_template: other workspaces no longer see it; what they installed stays. */
export async function unpublishTemplate(deps: TemplateDeps, caller: Caller, id: string) {
  const known = await findOwnTemplate(deps, caller, id);
  const template = await changeTemplate(deps, caller, known, ({ spec }) =>
    spec.listed ? { spec: { listed: false } } : undefined,
  );
  return { templateId: templateIdOf(template), status: 'draft', version: latestOf(template)?.version ?? 0 };
}
