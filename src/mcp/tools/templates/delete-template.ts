import { z } from 'zod';
import { deleteTemplate } from '../../../services/templates/edit.js';
import { defineTool } from '../../define-tool.js';
import { templateGate, templateIdArgument } from './template-arguments.js';
export const deleteTemplateTool = defineTool({
  name: 'delete_template',
  title: 'Delete template',
  description:
    'Deletes a template with all versions; installed agents stay. To only hide it from others use unpublish_template.',
  effect: 'destructive',
  confirm: true,
  gate: templateGate,
  input: z.object({ templateId: templateIdArgument }),
  handler: ({ templateId }, { caller, services }) => deleteTemplate(services.templates, caller, templateId),
});
