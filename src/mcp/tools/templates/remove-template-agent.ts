import { z } from 'zod';
import { removeTemplateAgent } from '../../../services/templates/edit.js';
import { defineTool } from '../../define-tool.js';
import { templateAgentIdArgument, templateGate, templateIdArgument } from './template-arguments.js';
export const removeTemplateAgentTool = defineTool({
  name: 'remove_template_agent',
  title: 'Remove agent from template',
  description: 'Removes an agent from the draft of a template; the agent that it came from stays (see delete_agent).',
  effect: 'destructive',
  confirm: true,
  gate: templateGate,
  input: z.object({ templateId: templateIdArgument, templateAgentId: templateAgentIdArgument }),
  handler: (ids, { caller, services }) => removeTemplateAgent(services.templates, caller, ids),
});
