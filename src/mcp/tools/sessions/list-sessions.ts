import { z } from 'zod';
import { listSessions } from '../../../services/sessions/sessions.js';
import { defineTool } from '../../define-tool.js';
import { agentIdArgument } from '../common-arguments.js';

export const listSessionsTool = defineTool({
  name: 'list_sessions',
  title: 'List sessions',
  description:
    'Lists the conversations of an agent, latest first. Use it to find a sessionId for get_session or send_message. Single executions are in list_runs.',
  effect: 'read',
  input: z.object({
    agentId: agentIdArgument,
    pending: z.boolean().default(false).describe('Only those that wait for an answer.'),
    limit: z.int().min(1).max(200).default(20).describe('Most sessions to return.'),
  }),
  handler: ({ agentId, ...query }, { caller, services }) => listSessions(services.scope, caller, agentId, query),
});
