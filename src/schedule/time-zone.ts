/** Time zones: which names exist, and what instant a wall-clock time in one of them is. Pure; the zone data is Node's. */

/** A date and time as a person writes it, in no zone yet. */
export interface WallTime {
  year: number;
  month: number;
  day: number;
  hour: number;
  minute: number;
  second: number;
}

const formatters = new Map<string, Intl.DateTimeFormat>();
/** Names come from objects that people write: the memory for them is bounded. */
const MAX_FORMATTERS = 600;

/** Whether the text names an IANA time zone, `Europe/Berlin` or `UTC`. Offsets such as `+02:00` are none. */
export function isTimeZone(name: string): boolean {
  return /^[A-Za-z][A-Za-z0-9_+\-/]*$/.test(name) && formatterOf(name) !== undefined;
}

function formatterOf(zone: string): Intl.DateTimeFormat | undefined {
  const known = formatters.get(zone);
  if (known !== undefined) return known;
  try {
    const made = new Intl.DateTimeFormat('en-US', {
      timeZone: zone,
      calendar: 'iso8601',
      hourCycle: 'h23',
      year: 'numeric',
      month: 'numeric',
      day: 'numeric',
      hour: 'numeric',
      minute: 'numeric',
      second: 'numeric',
    });
    if (formatters.size >= MAX_FORMATTERS) formatters.clear();
    formatters.set(zone, made);
    return made;
  } catch {
    return undefined;
  }
}

/** What a clock on the wall of that zone shows; throws a RangeError for a zone that does not exist. */
export function wallTimeAt(zone: string, instantMs: number): WallTime {
  const formatter = formatterOf(zone);
  if (formatter === undefined) throw new RangeError('no such time zone');
  const found: Partial<Record<string, number>> = {};
  for (const { type, value } of formatter.formatToParts(instantMs)) found[type] = Number(value);
  const { year = 0, month = 0, day = 0, hour = 0, minute = 0, second = 0 } = found;
  return { year, month, day, hour, minute, second };
}

/**
 * The instant in milliseconds at which the zone's clocks show `wall`. A time that occurs twice is the first of both; one
 * that the clocks jump over is moved on by the length of the jump (02:30 becomes 03:30).
 */
export function instantOf(zone: string, wall: WallTime): number {
  const asUtc = utcOf(wall);
  const dayMs = 24 * 60 * 60 * 1000;
  const before = offsetAt(zone, asUtc - dayMs);
  const after = offsetAt(zone, asUtc + dayMs);
  for (const offset of before === after ? [before] : [before, after].sort((a, b) => b - a)) {
    if (offsetAt(zone, asUtc - offset) === offset) return asUtc - offset;
  }
  return asUtc - before;
}

/** Milliseconds that the zone is ahead of UTC at an instant. */
function offsetAt(zone: string, instantMs: number): number {
  const seconds = Math.floor(instantMs / 1000) * 1000;
  return utcOf(wallTimeAt(zone, seconds)) - seconds;
}

function utcOf({ year, month, day, hour, minute, second }: WallTime): number {
  return Date.UTC(year, month - 1, day, hour, minute, second);
}
