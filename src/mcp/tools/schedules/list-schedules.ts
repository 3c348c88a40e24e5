import { z } from 'zod';
import { listSchedules } from '../../../services/schedules/schedules.js';
import { defineTool } from '../../define-tool.js';
import { agentIdArgument } from '../common-arguments.js';

export const listSchedulesTool = defineTool({
  name: 'list_schedules',
  title: 'List schedules',
  description:
    'Lists the schedules (scheduled tasks) of an agent in full: instruction, time, last and next run. For URLs that start it see list_triggers.',
  effect: 'read',
  input: z.object({ agentId: agentIdArgument }),
  handler: ({ agentId }, { caller, services }) => listSchedules(services.scope, caller, agentId),
});
