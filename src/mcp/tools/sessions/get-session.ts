import { z } from 'zod';
import { getSession } from '../../../services/sessions/sessions.js';
import { defineTool } from '../../define-tool.js';
import { agentIdArgument, idArgument } from '../common-arguments.js';

export const getSessionTool = defineTool({
  name: 'get_session',
  title: 'Get session',
  description:
    'Returns what user and agent said in one conversation, oldest first, cut at 4,000 characters a text. Page back with offset = nextOffset. For tool calls or full outputs use get_run.',
  effect: 'read',
  input: z.object({
    agentId: agentIdArgument,
    sessionId: idArgument.describe('Session id, from list_sessions or a run.'),
    limit: z.int().min(1).max(200).default(50).describe('Most messages to return.'),
    offset: z.int().min(0).default(0).describe('Messages to skip, counted from the newest.'),
  }),
  handler: ({ agentId, ...query }, { caller, services }) => getSession(services.scope, caller, agentId, query),
});
