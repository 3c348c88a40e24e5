import { z } from 'zod';
import { listSpaces } from '../../../services/agents/agents.js';
import { defineTool } from '../../define-tool.js';

export const listSpacesTool = defineTool({
  name: 'list_spaces',
  title: 'List Boxes',
  description:
    'Lists the Boxes (spaces) of the workspace with their ids and number of agents. Use it to find the spaceId for create_agent or list_agents.',
  effect: 'read',
  input: z.object({}),
  handler: (_input, { caller, services }) => ({ spaces: listSpaces(services.scope, caller) }),
});
