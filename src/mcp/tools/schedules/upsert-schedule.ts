import { z } from 'zod';
import { AgentScheduleSpec } from '../../../api/v1alpha1/agent-schedule.js';
import { upsertSchedule } from '../../../services/schedules.js';
import { defineTool } from '../../define-tool.js';
import { agentIdArgument } from '../shared-arguments.js';

export const upsertScheduleTool = defineTool({
  name: 'upsert_schedule',
  title: 'Create or update schedule',
  description:
    'Makes an agent run by the clock: repeatedly (cron) or once (runAt). Omit slug to create (name, body and one of cron, runAt); pass a slug to change only the passed fields. Returns nextRunAt. A schedule cannot be renamed.',
  effect: 'write',
  input: z.object({
    agentId: agentIdArgument,
    slug: z.string().min(1).optional().describe('Omit to create; an existing slug updates that schedule.'),
    name: AgentScheduleSpec.shape.name.optional().describe('Required to create; the slug comes from it.'),
    description: z.string().max(1024).optional().describe('One line about the schedule.'),
    body: z.string().min(1).optional().describe('Required to create: the instruction to the agent, at most 64 KiB.'),
    cron: z
      .string()
      .min(1)
      .max(128)
      .optional()
      .describe('Five fields: minute hour day-of-month month day-of-week, e.g. "0 9 * * 1-5". Replaces runAt.'),
    runAt: z
      .string()
      .min(1)
      .max(40)
      .optional()
      .describe('Date and time for one run, ISO 8601; in timezone when it has no offset. Replaces cron.'),
    timezone: z.string().min(1).max(64).optional().describe('IANA zone, e.g. Europe/Berlin; UTC by default.'),
    enabled: z.boolean().optional().describe('false pauses it; true by default.'),
  }),
  handler: ({ agentId, ...input }, { caller, services }) => upsertSchedule(services.schedules, caller, agentId, input),
});
