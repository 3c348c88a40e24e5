import { z } from 'zod';
import { MAX_TEMPLATE_AGENTS } from '../../../api/v1alpha1/agent-template.js';
import { createTemplate } from '../../../services/templates/edit.js';
import { defineTool } from '../../define-tool.js';
import { templateFields, templateGate } from './template-arguments.js';
import { idArgument } from '../common-arguments.js';
export const createTemplateTool = defineTool({
  name: 'create_template',
  title: 'Create template',
  description:
    'Makes a template of agents as they are now, with skills, schedules and triggers; never memory, credentials or runs. It is a draft until publish_template.',
  effect: 'write',
  gate: templateGate,
  input: z.object({
    ...templateFields,
    agentIds: z.array(idArgument).max(MAX_TEMPLATE_AGENTS).default([]).describe('Agents to capture, from list_agents.'),
  }),
  handler: (input, { caller, services }) => createTemplate(services.templates, caller, input),
});
