import { z } from 'zod';
import { updateTemplateAgent } from '../../../services/templates/edit.js';
import { defineTool } from '../../define-tool.js';
import { templateAgentUpdateFields } from '../agents/agent-arguments.js';
import { templateAgentIdArgument, templateGate, templateIdArgument } from './template-arguments.js';
export const updateTemplateAgentTool = defineTool({
  name: 'update_template_agent',
  title: 'Update agent in template',
  description:
    'Changes an agent inside the draft of a template, not the agent that it came from (update_agent). Fields as there.',
  effect: 'write',
  idempotent: true,
  gate: templateGate,
  input: z.object({
    templateId: templateIdArgument,
    templateAgentId: templateAgentIdArgument,
    recapture: z.boolean().default(false).describe('Capture its agent again first.'),
    ...templateAgentUpdateFields,
  }),
  handler: ({ templateId, templateAgentId, ...input }, { caller, services }) =>
    updateTemplateAgent(services.templates, caller, { templateId, templateAgentId }, input),
});
