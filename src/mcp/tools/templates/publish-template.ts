import { z } from 'zod';
import { publishTemplate } from '../../../services/templates/publish.js';
import { defineTool } from '../../define-tool.js';
import { templateGate, templateIdArgument } from './template-arguments.js';
export const publishTemplateTool = defineTool({
  name: 'publish_template',
  title: 'Publish template',
  description:
    'Makes the draft an immutable version that every workspace can install. Fails with the problems that validate_template finds.',
  effect: 'write',
  idempotent: true,
  gate: templateGate,
  input: z.object({ templateId: templateIdArgument }),
  handler: ({ templateId }, { caller, services }) => publishTemplate(services.templates, caller, templateId),
});
