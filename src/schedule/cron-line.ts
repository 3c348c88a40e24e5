/**
 * Cron lines of exactly five fields. croner finds the times; what it accepts beyond the five fields that everybody
 * knows (seconds, years, `@daily`, `?`, `+`) is refused here.
 */
import { Cron } from 'croner';

const FIELDS = [
  { name: 'minute', range: '0-59' },
  { name: 'hour', range: '0-23' },
  { name: 'day of month', range: '1-31' },
  { name: 'month', range: '1-12 or JAN-DEC' },
  { name: 'day of week', range: '0-7 or SUN-SAT' },
] as const;

/** What is wrong with a cron line, as the end of a sentence; undefined when it is right. */
export function cronProblem(line: string): string | undefined {
  const fields = fieldsOf(line);
  if (fields.length !== FIELDS.length) {
    return 'must have exactly five fields: minute, hour, day of month, month, day of week, for example "0 9 * * 1-5"';
  }
  for (const [index, { name, range }] of FIELDS.entries()) {
    const alone = FIELDS.map((_, other) => (other === index ? (fields[index] ?? '') : '*'));
    if (!isUnderstood(alone.join(' '))) {
      return `has a wrong ${name} (field ${index + 1}): use ${range}, *, lists (1,3), ranges (1-5) and steps (*/10)`;
    }
  }
  return undefined;
}

function fieldsOf(line: string): string[] {
  return line.trim().split(/\s+/);
}

function isUnderstood(line: string): boolean {
  if (!/^[0-9A-Za-z*,\-/# ]+$/.test(line)) return false;
  try {
    parse(line, 'UTC');
    return true;
  } catch {
    return false;
  }
}

/**
 * Times follow the clocks of the zone. In the hour that occurs twice a line with fixed hours and minutes ticks once, at
 * the first of both; in the hour that is jumped over it ticks at its end. A line with `*` in minute or hour ticks as
 * often as its time is shown, as Kubernetes CronJobs do.
 */
function parse(line: string, timezone: string): Cron {
  return new Cron(line, { paused: true, mode: '5-part', timezone, fixedTimeRule: 'no-wildcard' });
}

/** The first tick after `afterMs`; undefined when there is none (February 30). The line must have no problem. */
export function nextCronTick(line: string, timezone: string, afterMs: number): number | undefined {
  const after = new Date(Math.floor(afterMs / 1000) * 1000);
  return parse(fieldsOf(line).join(' '), timezone).nextRun(after)?.getTime();
}
