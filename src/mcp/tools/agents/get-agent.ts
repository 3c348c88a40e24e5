import { z } from 'zod';
import { getAgent } from '../../../services/agents/agents.js';
import { defineTool } from '../../define-tool.js';
import { agentIdArgument } from '../common-arguments.js';

export const getAgentTool = defineTool({
  name: 'get_agent',
  title: 'Get agent',
  description:
    'Returns one agent in full: soul (system prompt), model settings, tools, setup, MCP servers, and summaries of skills, schedules, triggers and connectors. Trigger URLs: list_triggers.',
  effect: 'read',
  input: z.object({ agentId: agentIdArgument }),
  handler: ({ agentId }, { caller, services }) => getAgent(services.scope, caller, agentId),
});
