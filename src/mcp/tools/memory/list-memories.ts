import { z } from 'zod';
import { listMemories } from '../../../services/memories/memories.js';
import { defineTool } from '../../define-tool.js';
import { agentIdArgument } from '../common-arguments.js';

export const listMemoriesTool = defineTool({
  name: 'list_memories',
  title: 'List memories',
  description:
    'Lists the durable notes that an agent has written for itself, newest first: what it remembers across conversations. What was said is in get_session.',
  effect: 'read',
  input: z.object({
    agentId: agentIdArgument,
    query: z.string().max(256).optional().describe('Words to look for.'),
    limit: z.int().min(1).max(500).default(100).describe('Most notes to return.'),
  }),
  handler: ({ agentId, ...query }, { caller, services }) => listMemories(services.scope, caller, agentId, query),
});
