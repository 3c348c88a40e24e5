import { z } from 'zod';
import { validateTemplate } from '../../../services/templates/publish.js';
import { defineTool } from '../../define-tool.js';
import { templateGate, templateIdArgument } from './template-arguments.js';
export const validateTemplateTool = defineTool({
  name: 'validate_template',
  title: 'Validate template',
  description:
    'Checks the draft of a template for what would break publish_template or an install: unknown connectors, foreign @handles, secrets in texts.',
  effect: 'read',
  gate: templateGate,
  input: z.object({ templateId: templateIdArgument }),
  handler: ({ templateId }, { caller, services }) => validateTemplate(services.scope, caller, templateId),
});
