import { z } from 'zod';
import { listRuns } from '../../../services/runs/runs.js';
import { defineTool } from '../../define-tool.js';
import { agentIdArgument } from '../common-arguments.js';

export const listRunsTool = defineTool({
  name: 'list_runs',
  title: 'List runs',
  description:
    'Lists the latest runs of an agent, newest first, with status, origin, tokens and cost, but without output. Read one in full with get_run.',
  effect: 'read',
  input: z.object({
    agentId: agentIdArgument,
    limit: z.int().min(1).max(200).default(20).describe('Most runs to return.'),
  }),
  handler: ({ agentId, limit }, { caller, services }) => listRuns(services.scope, caller, agentId, limit),
});
