import { z } from 'zod';
import { addTemplateAgent } from '../../../services/templates/edit.js';
import { defineTool } from '../../define-tool.js';
import { agentIdArgument } from '../common-arguments.js';
import { templateGate, templateIdArgument } from './template-arguments.js';
export const addTemplateAgentTool = defineTool({
  name: 'add_template_agent',
  title: 'Add agent to template',
  description:
    'Captures one more agent, as it is now, into the draft of a template. To capture it again: update_template_agent with recapture.',
  effect: 'write',
  gate: templateGate,
  input: z.object({ templateId: templateIdArgument, agentId: agentIdArgument }),
  handler: ({ templateId, agentId }, { caller, services }) =>
    addTemplateAgent(services.templates, caller, templateId, agentId),
});
