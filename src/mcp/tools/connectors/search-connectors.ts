import { z } from 'zod';
import { searchConnectors } from '../../../services/connectors/connectors.js';
import { defineTool } from '../../define-tool.js';

export const searchConnectorsTool = defineTool({
  name: 'search_connectors',
  title: 'Search connector catalog',
  description:
    'Searches the catalog of connectors (remote MCP servers such as GitHub or Linear) with the credentials that each needs. Attach one with attach_connector; what an agent has is in list_agent_connectors.',
  effect: 'read',
  input: z.object({
    query: z.string().max(200).default('').describe('Words to look for.'),
    category: z.string().max(64).optional().describe('Only this category.'),
    limit: z.int().min(1).max(200).default(20).describe('Most connectors to return.'),
  }),
  handler: (input, { services }) => searchConnectors(services.scope, input),
});
