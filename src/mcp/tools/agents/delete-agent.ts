import { z } from 'zod';
import { deleteAgent } from '../../../services/agents/update-agent.js';
import { defineTool } from '../../define-tool.js';
import { agentIdArgument } from '../common-arguments.js';

export const deleteAgentTool = defineTool({
  name: 'delete_agent',
  title: 'Delete agent',
  description:
    'Deletes an agent for good with its skills, schedules, triggers, memory, files and runs; its URLs die at once.',
  effect: 'destructive',
  confirm: true,
  input: z.object({ agentId: agentIdArgument }),
  handler: ({ agentId }, { caller, services }) => deleteAgent(services.agents, caller, agentId),
});
