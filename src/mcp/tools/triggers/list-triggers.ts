import { z } from 'zod';
import { listTriggers } from '../../../services/triggers/triggers.js';
import { defineTool } from '../../define-tool.js';
import { agentIdArgument } from '../common-arguments.js';

export const listTriggersTool = defineTool({
  name: 'list_triggers',
  title: 'List triggers',
  description:
    'Lists webhook triggers of an agent with their public URLs, secrets that start the agent. A read-only key gets no URLs.',
  effect: 'read',
  showsSecrets: true,
  input: z.object({ agentId: agentIdArgument }),
  handler: ({ agentId }, { caller, services }) => listTriggers(services.triggers, caller, agentId),
});
