import { z } from 'zod';
import { listTemplates } from '../../../services/templates/read.js';
import { defineTool } from '../../define-tool.js';
import { templateGate } from './template-arguments.js';
export const listTemplatesTool = defineTool({
  name: 'list_templates',
  title: 'List templates',
  description:
    'Lists templates (packaged sets of agents), newest first: own ones, published ones of all workspaces, or all. Use one with install_template.',
  effect: 'read',
  gate: templateGate,
  input: z.object({
    scope: z.enum(['own', 'published', 'all']).default('own').describe('Whose.'),
    status: z.enum(['draft', 'published']).optional().describe('Only these.'),
    query: z.string().max(200).optional().describe('Words to look for.'),
  }),
  handler: (input, { caller, services }) => listTemplates(services.scope, caller, input),
});
