import { z } from 'zod';
import { AgentTriggerSpec, TRIGGER_METHODS, TriggerMethod } from '../../../api/v1alpha1/agent-trigger.js';
import { upsertTrigger } from '../../../services/triggers/triggers.js';
import { defineTool } from '../../define-tool.js';
import { agentIdArgument, idArgument, textArgument } from '../common-arguments.js';

export const upsertTriggerTool = defineTool({
  name: 'upsert_trigger',
  title: 'Create or update trigger',
  description:
    'Creates a webhook trigger (omit slug; needs name and body) or updates one (pass slug; only passed fields change). Returns its secret URL. The caller’s payload is appended to body. No renaming.',
  effect: 'write',
  input: z.object({
    agentId: agentIdArgument,
    slug: idArgument.optional().describe('Omit to create.'),
    name: AgentTriggerSpec.shape.name.optional().describe('To create; slug and URL come from it.'),
    body: textArgument.min(1).optional().describe('To create: the instruction, at most 60 KiB.'),
    methods: z
      .array(TriggerMethod)
      .min(1)
      .max(TRIGGER_METHODS.length)
      .optional()
      .describe('HTTP methods that fire it; POST by default.'),
    description: z.string().max(1024).optional().describe('One line about the trigger.'),
    enabled: z.boolean().optional().describe('false makes the URL answer like a missing one.'),
  }),
  handler: ({ agentId, ...input }, { caller, services }) => upsertTrigger(services.triggers, caller, agentId, input),
});
