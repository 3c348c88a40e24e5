/**
 * When a schedule ticks, and what a look at the clock means for it. Pure: API pods show the next tick by it and the
 * controller fires by it.
 */
import { cronProblem, nextCronTick } from './cron-line.js';
import { parseRunAt } from './run-at.js';
import { isTimeZone } from './time-zone.js';

/** A tick that could not fire in time is caught up for this long, and skipped afterwards. */
export const STARTING_DEADLINE_MS = 10 * 60 * 1000;

/** The part of AgentSchedule.spec that says when: exactly one of cron and runAt. */
export interface Timing {
  cron?: string | undefined;
  runAt?: string | undefined;
  timezone: string;
}

/** What is wrong, with the field that it is about. */
export interface TimingProblem {
  field: 'cron' | 'runAt' | 'timezone';
  message: string;
}

/** Undefined when the timing can be followed. */
export function timingProblem({ cron, runAt, timezone }: Timing): TimingProblem | undefined {
  if (!isTimeZone(timezone)) {
    return { field: 'timezone', message: 'must be an IANA time zone, for example Europe/Berlin or UTC' };
  }
  if (runAt !== undefined) {
    if (parseRunAt(runAt, timezone) !== undefined) return undefined;
    const message = 'must be a date and time, for example 2030-01-31T09:00 (in timezone) or 2030-01-31T09:00:00Z';
    return { field: 'runAt', message };
  }
  const message = cronProblem(cron ?? '');
  if (message !== undefined) return { field: 'cron', message };
  if (nextCronTick(cron ?? '', timezone, REFERENCE_MS) !== undefined) return undefined;
  return { field: 'cron', message: 'never comes: no date fits, such as February 30' };
}

/** Any time does: a line that ticks at all ticks after it. */
const REFERENCE_MS = Date.UTC(2024, 0, 1);

/** The first tick after `afterMs`, in milliseconds; undefined when there is none. The timing must have no problem. */
export function nextTick({ cron, runAt, timezone }: Timing, afterMs: number): number | undefined {
  if (cron !== undefined) return nextCronTick(cron, timezone, afterMs);
  const date = runAt === undefined ? undefined : parseRunAt(runAt, timezone);
  return date !== undefined && date > afterMs ? date : undefined;
}

/** What is to be done about the ticks of a span of time. */
export interface DueTicks {
  /** The tick to fire: the newest one that is not older than the starting deadline. Earlier ones are not fired. */
  due: number | undefined;
  /** The oldest tick that is too old to fire. */
  missed: number | undefined;
  /** The first tick that is still to come. */
  next: number | undefined;
}

/** Looks at the ticks after `sinceMs` up to `nowMs`. */
export function ticksDue(timing: Timing, sinceMs: number, nowMs: number): DueTicks {
  const oldest = nowMs - STARTING_DEADLINE_MS;
  const first = nextTick(timing, sinceMs);
  let due: number | undefined;
  let next = nextTick(timing, Math.max(sinceMs, oldest - 1));
  // At most one tick a minute: this ends after the ticks of the deadline.
  while (next !== undefined && next <= nowMs) {
    due = next;
    next = nextTick(timing, next);
  }
  return { due, missed: first !== undefined && first < oldest ? first : undefined, next };
}
