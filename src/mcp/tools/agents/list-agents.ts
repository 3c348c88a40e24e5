import { z } from 'zod';
import { listAgents } from '../../../services/agents/agents.js';
import { defineTool } from '../../define-tool.js';
import { idArgument } from '../common-arguments.js';

export const listAgentsTool = defineTool({
  name: 'list_agents',
  title: 'List agents',
  description:
    'Lists the agents of the workspace, newest first, with id, handle and status. The id is the agentId of every other tool.',
  effect: 'read',
  input: z.object({
    spaceId: idArgument.optional().describe('Only this Box.'),
  }),
  handler: ({ spaceId }, { caller, services }) => ({ agents: listAgents(services.scope, caller, spaceId) }),
});
