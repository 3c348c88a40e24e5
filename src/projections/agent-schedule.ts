/** Projections of AgentSchedules. */
import { AgentSchedules } from '../api/v1alpha1/agent-schedule.js';
import type { AgentSchedule } from '../api/v1alpha1/agent-schedule.js';
import type { InformerOptions } from '../kube/types.js';
import { CHILD_INDEXES, CONTROLLER_CHILD_INDEXES, projectApiChild } from './agent-child.js';
import type { ApiChild } from './agent-child.js';
import { withoutManagedFields } from './meta.js';

/** For the tools. */
export interface ApiSchedule extends ApiChild {
  body: string;
  cron: string | undefined;
  runAt: string | undefined;
  timezone: string;
  enabled: boolean;
  lastTick: string | undefined;
  lastRunAt: string | undefined;
  lastRunId: string | undefined;
}

export function projectApiSchedule(schedule: AgentSchedule): ApiSchedule {
  const { spec, status } = schedule;
  return {
    ...projectApiChild(schedule),
    body: spec.body,
    cron: spec.cron,
    runAt: spec.runAt,
    timezone: spec.timezone,
    enabled: spec.enabled,
    lastTick: status?.lastTick,
    lastRunAt: status?.lastRunAt,
    lastRunId: status?.lastRunId,
  };
}

export const apiScheduleInformer: InformerOptions<AgentSchedule, ApiSchedule> = {
  type: AgentSchedules,
  project: projectApiSchedule,
  indexes: CHILD_INDEXES,
};

/** Whole: the instruction is what a tick sends. */
export const controllerScheduleInformer: InformerOptions<AgentSchedule, AgentSchedule> = {
  type: AgentSchedules,
  project: withoutManagedFields,
  indexes: CONTROLLER_CHILD_INDEXES,
};
