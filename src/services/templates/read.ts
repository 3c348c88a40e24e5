/** Listing and reading templates. */
import type { Caller } from '../keys/key-check.js';
import type { ScopeDeps } from '../scope.js';
import { UserError } from '../../api/user-error.js';
import { ContentGoneError, readContent } from './content-store.js';
import type { ContentRef } from './content-store.js';
import { findTemplate, templatesIn } from './find.js';
import type { TemplateScope } from './find.js';
import { latestOf, templateAgentRecord, templateRecord } from './records.js';
import type { PublishedVersion } from './records.js';
import type { TemplateProjection } from '../../projections/agent-template.js';

export interface TemplateFilter {
  scope: TemplateScope;
  status?: 'draft' | 'published' | undefined;
  query?: string | undefined;
}

/** The result of list_templates, newest first. No request. */
export function listTemplates(deps: Pick<ScopeDeps, 'caches'>, caller: Caller, filter: TemplateFilter) {
  const words = (filter.query ?? '').toLowerCase().split(/\s+/).filter(Boolean);
  const templates = templatesIn(deps, caller, filter.scope)
    .map((template) => templateRecord(deps, caller, template))
    .filter(({ status }) => filter.status === undefined || status === filter.status)
    .filter(({ name, description, category, tags }) => {
      const text = [name, description, category ?? '', ...tags].join(' ').toLowerCase();
      return words.every((word) => text.includes(word));
    });
  return { templates };
}

/** What a version number means: a published version, or the draft (undefined). */
export function versionOf(
  template: TemplateProjection,
  caller: Caller,
  asked: { version: number | undefined; default: 'draft' | 'latest' },
): PublishedVersion | undefined {
  const own = template.workspace === caller.workspace;
  const { version } = asked;
  if (own && (version === 0 || (version === undefined && asked.default === 'draft'))) return undefined;
  const found = version === undefined ? latestOf(template) : template.published.find((one) => one.version === version);
  if (found !== undefined) return found;
  if (version === undefined) {
    throw new UserError('the template has no published version: publish it, or pass version 0 for its draft');
  }
  const known = template.published.map((one) => one.version).join(', ');
  throw new UserError(`version not found: published versions are ${known === '' ? 'none' : known}`);
}

/** The result of get_template. */
export async function getTemplate(deps: ScopeDeps, caller: Caller, id: string, version: number | undefined) {
  const template = await findTemplate(deps, caller, id);
  const own = template.workspace === caller.workspace;
  const shown = versionOf(template, caller, { version, default: 'draft' });
  const agents = await readVersion(deps, template, shown ?? template.draft);
  return {
    ...templateRecord(deps, caller, template, version === undefined ? undefined : shown),
    agents: agents.map((agent) => templateAgentRecord(agent, own)),
  };
}

/** The agents of a version; a draft that was replaced meanwhile is a conflict that a retry resolves. */
export async function readVersion(deps: ScopeDeps, template: TemplateProjection, ref: ContentRef) {
  try {
    return await readContent(deps, template, ref);
  } catch (error) {
    if (error instanceof ContentGoneError) throw new UserError('the template was changed in this moment: try again');
    throw error;
  }
}
