import { z } from 'zod';
import { getTemplate } from '../../../services/templates/read.js';
import { defineTool } from '../../define-tool.js';
import { templateGate, templateIdArgument } from './template-arguments.js';
export const getTemplateTool = defineTool({
  name: 'get_template',
  title: 'Get template',
  description:
    'Returns a template with its agents and their templateAgentIds; of another workspace without souls, bodies and setup prompts.',
  effect: 'read',
  gate: templateGate,
  input: z.object({
    templateId: templateIdArgument,
    version: z.int().min(0).optional().describe('A published version; 0 = own draft.'),
  }),
  handler: ({ templateId, version }, { caller, services }) => getTemplate(services.scope, caller, templateId, version),
});
