/** Ticks that found no room. Label values come from a closed list and are never names. */
import { Counter } from 'prom-client';
import type { Registry } from 'prom-client';
import { BACKLOG_SCOPES } from '../../run/start/backlog-budget.js';
import type { BacklogScope } from '../../run/start/backlog-budget.js';

export interface ScheduleMetrics {
  /** The budget turned an attempt to fire a tick away. */
  turnedAway(scope: BacklogScope): void;
}

/** `boxwright_schedule_turned_away_total`: any rise means that a tick is late, and lost when the budget stays used up. */
export function createScheduleMetrics(registry: Registry): ScheduleMetrics {
  const tries = new Counter({
    name: 'boxwright_schedule_turned_away_total',
    help: 'Tries to start the run of a tick that the backlog budget turned away, by the budget that is used up.',
    labelNames: ['scope'],
    registers: [registry],
  });
  // An alert can see a rise only of a series that already exists.
  for (const scope of BACKLOG_SCOPES) tries.inc({ scope }, 0);
  return { turnedAway: (scope) => tries.inc({ scope }) };
}
