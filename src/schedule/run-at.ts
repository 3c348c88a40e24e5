/** The one date of a schedule that fires once. */
import { instantOf } from './time-zone.js';

const DATE_TIME =
  /^(\d{4})-(\d{2})-(\d{2})[Tt ](\d{2}):(\d{2})(?::(\d{2})(?:\.(\d{1,9}))?)?(?:([Zz])|([+-])(\d{2}):?(\d{2}))?$/;

/**
 * The instant in milliseconds of an ISO 8601 date and time; without an offset it is read in `timezone`. Undefined for
 * anything else and for days that do not exist. Fractions of a second are dropped.
 */
export function parseRunAt(text: string, timezone: string): number | undefined {
  const match = DATE_TIME.exec(text);
  if (match === null) return undefined;
  const [year = 0, month = 0, day = 0, hour = 0, minute = 0, second = 0] = match
    .slice(1, 7)
    .map((part) => Number(part ?? 0));
  const wall = { year, month, day, hour, minute, second };
  if (!isReal(wall)) return undefined;
  const [zulu, sign, offsetHours, offsetMinutes] = match.slice(8);
  if (zulu !== undefined) return utc(wall);
  if (sign === undefined) return instantOf(timezone, wall);
  const [hours, minutes] = [Number(offsetHours), Number(offsetMinutes)];
  if (hours > 23 || minutes > 59) return undefined;
  return utc(wall) - (sign === '+' ? 1 : -1) * (hours * 60 + minutes) * 60_000;
}

type Wall = Parameters<typeof instantOf>[1];

function isReal(wall: Wall): boolean {
  if (wall.hour > 23 || wall.minute > 59 || wall.second > 59) return false;
  const date = new Date(utc(wall));
  return date.getUTCMonth() === wall.month - 1 && date.getUTCDate() === wall.day;
}

function utc({ year, month, day, hour, minute, second }: Wall): number {
  return Date.UTC(year, month - 1, day, hour, minute, second);
}
