import { z } from 'zod';
import { AgentScheduleSpec } from '../../../api/v1alpha1/agent-schedule.js';
import { upsertSchedule } from '../../../services/schedules/schedules.js';
import { defineTool } from '../../define-tool.js';
import { agentIdArgument, idArgument, textArgument } from '../common-arguments.js';

export const upsertScheduleTool = defineTool({
  name: 'upsert_schedule',
  title: 'Create or update schedule',
  description:
    'Makes an agent run by the clock: repeatedly (cron) or once (runAt). Omit slug to create (needs name, body and one of cron, runAt); pass slug to change only passed fields. Returns nextRunAt. No renaming.',
  effect: 'write',
  input: z.object({
    agentId: agentIdArgument,
    slug: idArgument.optional().describe('Omit to create.'),
    name: AgentScheduleSpec.shape.name.optional().describe('To create; the slug comes from it.'),
    description: z.string().max(1024).optional().describe('One line about the schedule.'),
    body: textArgument.min(1).optional().describe('To create: the instruction, at most 64 KiB.'),
    cron: z.string().min(1).max(128).optional().describe('Five fields, for example "0 9 * * 1-5". Replaces runAt.'),
    runAt: z.string().min(1).max(40).optional().describe('ISO 8601; in timezone when it has no offset. Replaces cron.'),
    timezone: z.string().min(1).max(64).optional().describe('IANA zone, e.g. Europe/Berlin; UTC by default.'),
    enabled: z.boolean().optional().describe('false pauses it; true by default.'),
  }),
  handler: ({ agentId, ...input }, { caller, services }) => upsertSchedule(services.schedules, caller, agentId, input),
});
