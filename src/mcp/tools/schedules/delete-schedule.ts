import { z } from 'zod';
import { deleteSchedule } from '../../../services/schedules/schedules.js';
import { defineTool } from '../../define-tool.js';
import { agentIdArgument } from '../common-arguments.js';
import { scheduleSlugArgument } from './schedule-arguments.js';

export const deleteScheduleTool = defineTool({
  name: 'delete_schedule',
  title: 'Delete schedule',
  description:
    'Deletes a schedule; runs that it started stay. This cannot be undone: to stop it for a while use upsert_schedule with enabled false.',
  effect: 'destructive',
  confirm: true,
  input: z.object({ agentId: agentIdArgument, slug: scheduleSlugArgument }),
  handler: ({ agentId, slug }, { caller, services }) => deleteSchedule(services.schedules, caller, agentId, slug),
});
