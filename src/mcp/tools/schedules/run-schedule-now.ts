import { z } from 'zod';
import { runScheduleNow } from '../../../services/schedules/schedules.js';
import { defineTool } from '../../define-tool.js';
import { agentIdArgument } from '../common-arguments.js';
import { scheduleSlugArgument } from './schedule-arguments.js';

export const runScheduleNowTool = defineTool({
  name: 'run_schedule_now',
  title: 'Run schedule now',
  description:
    'Starts the run of a schedule at once, also when it is disabled; its own times do not change. Returns the runId without waiting: read it with get_run.',
  effect: 'run',
  input: z.object({ agentId: agentIdArgument, slug: scheduleSlugArgument }),
  handler: ({ agentId, slug }, { caller, services }) => runScheduleNow(services.schedules, caller, agentId, slug),
});
