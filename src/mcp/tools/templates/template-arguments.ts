/** What the template tools share: the gate of spec 1.7 and arguments. */
import { AgentTemplateSpec } from '../../../api/v1alpha1/agent-template.js';
import { expectExpertSandbox } from '../../../services/templates/find.js';
import type { ToolCall } from '../../define-tool.js';
import { idArgument } from '../common-arguments.js';

/** Called before the arguments are checked. */
export function templateGate({ caller, services }: ToolCall): void {
  expectExpertSandbox(services.scope, caller);
}

export const templateIdArgument = idArgument.describe('From list_templates.');
export const templateAgentIdArgument = idArgument.describe('From get_template.');

const { name, description, category, tags, requiredEvals } = AgentTemplateSpec.shape;

export const templateFields = {
  name: name.describe('Display name.'),
  description: description.unwrap().optional().describe('What it gives; needed to publish.'),
  category: category.unwrap().optional().describe('Category.'),
  tags: tags.unwrap().optional().describe('Tags.'),
  requiredEvals: requiredEvals.describe('AgentEvals, as <box>.<name>, that must pass before it is published.'),
};

/** In an update null empties a text. */
export const templateUpdateFields = {
  ...templateFields,
  name: templateFields.name.optional(),
  description: description.unwrap().nullable().optional().describe('What it gives.'),
  category: category.unwrap().nullable().optional().describe('Null empties it.'),
};
