/** What is due for a schedule at a given time. Pure. */
import type { AgentSchedule } from '../../api/v1alpha1/agent-schedule.js';
import { parseRunAt } from '../../schedule/run-at.js';
import { STARTING_DEADLINE_MS, ticksDue, timingProblem } from '../../schedule/timing.js';
import type { Timing, TimingProblem } from '../../schedule/timing.js';

export type PlannedSchedule = Pick<AgentSchedule, 'metadata' | 'spec' | 'status'>;

export type SchedulePlan =
  /** Disabled, or a date that was handled: nothing ticks. */
  | { kind: 'off' }
  /** Cannot be followed as it is written. */
  | { kind: 'invalid'; problem: TimingProblem }
  | TickPlan;

export interface TickPlan {
  kind: 'on';
  /** For the status: from when on ticks count, and for which timing. */
  armedFor: string;
  armedAt: number;
  /** The tick to fire now. */
  due: number | undefined;
  /** A tick that was too old to fire; of a date also one that was over from the beginning. */
  missed: number | undefined;
  next: number | undefined;
}

/** Ticks count from the schedule's creation, and from now on when it was enabled or got another timing. */
export function planSchedule(schedule: PlannedSchedule, nowMs: number): SchedulePlan {
  const { spec, status } = schedule;
  if (!spec.enabled || isOver(schedule)) return { kind: 'off' };
  const problem = timingProblem(spec);
  if (problem !== undefined) return { kind: 'invalid', problem };
  const armedFor = describe(spec);
  const armedAt = status?.armedFor === armedFor ? timeOf(status.armedAt, nowMs) : newlyArmedAt(schedule, nowMs);
  const { due, missed, next } = ticksDue(spec, Math.max(armedAt, timeOf(status?.lastTick, 0)), nowMs);
  if (due === undefined && next === undefined && spec.runAt !== undefined) {
    return { kind: 'on', armedFor, armedAt, due, missed: parseRunAt(spec.runAt, spec.timezone), next };
  }
  // What is too old now is never considered again.
  const forgotten = missed === undefined ? armedAt : nowMs - STARTING_DEADLINE_MS - 1;
  return { kind: 'on', armedFor, armedAt: forgotten, due, missed, next };
}

/** Whether the one date of the schedule was handled. */
export function isOver({ spec, status }: PlannedSchedule): boolean {
  if (spec.runAt === undefined || status?.lastTick === undefined) return false;
  const date = parseRunAt(spec.runAt, spec.timezone);
  return date !== undefined && date <= Date.parse(status.lastTick);
}

function describe({ cron, runAt, timezone }: Timing): string {
  return `${cron ?? runAt ?? ''} ${timezone}`;
}

/** A schedule without any status is new: ticks since its creation are caught up. */
function newlyArmedAt({ metadata, status }: PlannedSchedule, nowMs: number): number {
  return status?.conditions === undefined ? timeOf(metadata.creationTimestamp, nowMs) : nowMs;
}

function timeOf(text: string | undefined, fallback: number): number {
  const time = Date.parse(text ?? '');
  return Number.isNaN(time) ? fallback : time;
}
