import { z } from 'zod';
import { MAX_CONNECTORS } from '../../../api/v1alpha1/agent.js';
import { createAgent } from '../../../services/agents/agents.js';
import { defineTool } from '../../define-tool.js';
import { agentFields } from './agent-arguments.js';
import { idArgument, textArgument } from '../common-arguments.js';

export const createAgentTool = defineTool({
  name: 'create_agent',
  title: 'Create agent',
  description:
    'Creates an agent. The handle comes from name. spaceId is needed when the workspace has several Boxes. active: false means that it was created but no agent slot is free.',
  effect: 'write',
  refused: { handle: 'the handle comes from name; change it later with update_agent' },
  input: z.object({
    name: z.string().min(1).max(128).describe('Display name.'),
    spaceId: idArgument.optional().describe('From list_spaces; optional with a single Box.'),
    ...agentFields,
    connectors: z.array(textArgument).max(MAX_CONNECTORS).optional().describe('Slugs, from search_connectors.'),
  }),
  handler: (input, { caller, services }) => createAgent(services.agents, caller, input),
});
