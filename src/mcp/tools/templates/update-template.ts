import { z } from 'zod';
import { updateTemplate } from '../../../services/templates/edit.js';
import { defineTool } from '../../define-tool.js';
import { templateGate, templateIdArgument, templateUpdateFields } from './template-arguments.js';
export const updateTemplateTool = defineTool({
  name: 'update_template',
  title: 'Update template',
  description:
    'Changes name, description, category or tags of a draft; published versions stay. For its agents: update_template_agent.',
  effect: 'write',
  idempotent: true,
  gate: templateGate,
  input: z.object({ templateId: templateIdArgument, ...templateUpdateFields }),
  handler: ({ templateId, ...input }, { caller, services }) =>
    updateTemplate(services.templates, caller, templateId, input),
});
