import { z } from 'zod';
import { updateAgent } from '../../../services/agents/update-agent.js';
import { defineTool } from '../../define-tool.js';
import { agentIdArgument } from '../common-arguments.js';
import { agentUpdateFields } from './agent-arguments.js';

export const updateAgentTool = defineTool({
  name: 'update_agent',
  title: 'Update agent',
  description:
    'Changes the passed fields of an agent only; soul is replaced as a whole, so read it with get_agent first. Connectors: attach_connector; MCP servers: set_mcp_servers.',
  effect: 'destructive',
  idempotent: true,
  refused: {
    spaceId: 'an agent stays in its Box',
    connectors: 'use attach_connector and detach_connector',
  },
  input: z.object({ agentId: agentIdArgument, ...agentUpdateFields }),
  handler: ({ agentId, ...input }, { caller, services }) => updateAgent(services.agents, caller, agentId, input),
});
