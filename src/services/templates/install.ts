/** install_template: all agents or none; installation.ts says how. */
import type { Caller } from '../keys/key-check.js';
import { chooseBox } from '../scope.js';
import { currentKey } from '../triggers/triggers.js';
import { UserError } from '../../api/user-error.js';
import { findTemplate, templateIdOf } from './find.js';
import type { TemplateDeps } from './find.js';
import { Installation } from './installation.js';
import { readVersion, versionOf } from './read.js';

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
  const install = new Installation(deps, caller, { box, keyId, source, template });
  const installed = await install.run(snapshots);
  return {
    templateId: templateIdOf(template),
    version: version?.version ?? 0,
    spaceId: box.name,
    agents: installed,
  };
}
