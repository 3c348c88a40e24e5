import { z } from 'zod';
import { AGE_COLUMN, childOfAgentName, defineResource, immutableSpecField } from '../define-resource.js';
import type { Resource } from '../meta.js';
import { Conditions, Timestamp } from './common.js';

export const AgentScheduleSpec = z.object({
  agent: z.string().min(1).max(36).describe('The Agent of this namespace that the schedule starts. Immutable.'),
  name: z.string().min(1).max(128).describe('Display name. Immutable: the slug comes from it.'),
  description: z.string().max(1024).default('').describe('One line about the schedule.'),
  body: z.string().min(1).max(65_536).describe('The instruction sent to the agent at each tick.'),
  cron: z
    .string()
    .min(1)
    .max(128)
    .optional()
    .describe('Five fields: minute, hour, day of month, month, day of week. Exactly one of cron and runAt.'),
  runAt: Timestamp.min(1)
    .optional()
    .describe(
      'The date of a schedule that fires once, in timezone when it has no offset. Exactly one of cron and runAt.',
    ),
  timezone: z.string().min(1).max(64).default('UTC').describe('IANA time zone in which cron and runAt are read.'),
  enabled: z.boolean().default(true).describe('A disabled schedule does not tick; run_schedule_now still works.'),
  keyId: z
    .string()
    .max(32)
    .optional()
    .describe('The key of the keyring behind the names of its runs; the control plane sets it.'),
});

export const AgentScheduleStatus = z.object({
  conditions: Conditions,
  lastTick: Timestamp.optional().describe(
    'The newest tick that was handled, fired or skipped; it is never fired again.',
  ),
  armedFor: z
    .string()
    .max(256)
    .optional()
    .describe('The timing of the spec that armedAt is about; absent while the schedule does not tick.'),
  armedAt: Timestamp.optional().describe(
    'Ticks up to this time do not fire: the schedule was made, enabled or given another timing then, or missed them.',
  ),
  lastRunAt: Timestamp.optional().describe('The newest tick that fired.'),
  lastRunId: z.string().max(63).optional().describe('Name of the run that this tick started.'),
  nextRunAt: Timestamp.optional().describe('When the schedule fires next.'),
});

/** Starts runs of one agent by the clock. Its name is `<agent>.<slug>`. */
export const AgentSchedules = defineResource({
  kind: 'AgentSchedule',
  plural: 'agentschedules',
  shortNames: ['asch'],
  namespaced: true,
  description: 'Starts runs of one agent by the clock: a cron line with a time zone, or one date.',
  spec: AgentScheduleSpec,
  status: AgentScheduleStatus,
  columns: [
    { name: 'Agent', jsonPath: '.spec.agent', type: 'string', description: 'The agent that it starts.' },
    { name: 'Schedule', jsonPath: '.spec.cron', type: 'string', description: 'Cron line; empty for one date.' },
    { name: 'Enabled', jsonPath: '.spec.enabled', type: 'boolean', description: 'Whether the schedule fires.' },
    { name: 'Last Run', jsonPath: '.status.lastRunAt', type: 'date', description: 'When it last started a run.' },
    { name: 'Next Run', jsonPath: '.status.nextRunAt', type: 'string', description: 'When it will start a run next.' },
    AGE_COLUMN,
  ],
  rules: [
    childOfAgentName('AgentSchedule'),
    immutableSpecField('agent'),
    immutableSpecField('name', 'spec.name cannot be changed: delete and recreate the schedule'),
    {
      rule: 'has(self.spec.cron) != has(self.spec.runAt)',
      message: 'exactly one of spec.cron and spec.runAt is needed',
      fieldPath: '.spec',
    },
  ],
});
export type AgentSchedule = Resource<z.output<typeof AgentScheduleSpec>, z.output<typeof AgentScheduleStatus>>;
