/** install_template (tools.md 4): all agents or none; how that is kept stands in installation.ts. */
import { AgentTemplates } from '../../api/v1alpha1/agent-template.js';
import { isConflict } from '../../kube/errors.js';
import type { Caller } from '../key-check.js';
import { chooseBox, kubeCall } from '../scope.js';
import { currentKey } from '../triggers.js';
import { UserError } from '../user-error.js';
import type { TemplateView } from '../views.js';
import { findTemplate, readTemplate, templateIdOf } from './find.js';
import type { TemplateDeps } from './find.js';
import { Installation } from './installation.js';
import { readVersion, versionOf } from './read.js';

const MAX_COUNT_ATTEMPTS = 3;

export interface InstallRequest {
  templateId: string;
  spaceId?: string | undefined;
  version?: number | undefined;
}

/** The result of install_template. */
export async function installTemplate(deps: TemplateDeps, caller: Caller, request: InstallRequest) {
  const template = await findTemplate(deps, caller, request.templateId);
  const box = chooseBox(deps, caller, request.spaceId);
  const version = versionOf(template, caller, { version: request.version, default: 'latest' });
  const snapshots = await readVersion(deps, template, version ?? template.draft);
  if (snapshots.length === 0) throw new UserError('the template has no agent: add one with add_template_agent');
  const keyId = currentKey(deps);
  const source = `${templateIdOf(template)}@${version?.version ?? 0}`;
  const install = new Installation(deps, caller, { box, keyId, source });
  const installed = await install.run(snapshots);
  await countInstall(deps, template);
  return {
    templateId: templateIdOf(template),
    version: version?.version ?? 0,
    spaceId: box.name,
    agents: installed,
  };
}

/** How often a template was installed is a number for people: when it cannot be written, the install stands. */
async function countInstall(deps: TemplateDeps, known: TemplateView): Promise<void> {
  for (let attempt = 1; attempt <= MAX_COUNT_ATTEMPTS; attempt++) {
    try {
      const template = await readTemplate(deps, known);
      if (template === undefined) return;
      const metadata = { resourceVersion: template.metadata.resourceVersion };
      const body = { metadata, status: { installs: (template.status?.installs ?? 0) + 1 } };
      const options = { type: 'merge', subresource: 'status' } as const;
      const written = await kubeCall(deps, (signal) =>
        deps.api.patch(AgentTemplates, known, body, { ...options, signal }),
      );
      await deps.barrier.passed({
        kind: AgentTemplates.kind,
        resourceVersion: written.metadata.resourceVersion ?? '',
      });
      return;
    } catch (error) {
      if (!isConflict(error)) return;
    }
  }
}
