import { cronProblem, nextCronTick } from './cron-line.js';
import { wallTimeAt } from './time-zone.js';

/** The ticks after `from` up to `to`, as ISO times to the minute. */
function ticks(line: string, zone: string, from: string, to: string): string[] {
  const found: string[] = [];
  let tick = nextCronTick(line, zone, Date.parse(from));
  while (tick !== undefined && tick <= Date.parse(to)) {
    found.push(new Date(tick).toISOString().replace(':00.000Z', 'Z'));
    tick = nextCronTick(line, zone, tick);
  }
  return found;
}

describe('the clocks jump ahead (Berlin, 29 March 2026, 02:00 to 03:00)', () => {
  const day = ['2026-03-28T12:00Z', '2026-03-29T12:00Z'] as const;

  test.each([
    ['a time in the gap ticks once, at its end', '30 2 * * *', ['2026-03-29T01:00Z']],
    ['two times in the gap tick once', '0,30 2 * * *', ['2026-03-29T01:00Z']],
    ['a time in the gap and the end of the gap tick once', '0 2,3 * * *', ['2026-03-29T01:00Z']],
    ['the end of the gap ticks once', '0 3 * * *', ['2026-03-29T01:00Z']],
    ['a range over the gap keeps its last hour', '30 2-3 * * *', ['2026-03-29T01:00Z', '2026-03-29T01:30Z']],
    ['a time outside the gap does not move', '30 5 * * *', ['2026-03-29T03:30Z']],
  ])('%s', (_what, line, expected) => {
    expect(ticks(line, 'Europe/Berlin', ...day)).toEqual(expected);
  });

  test('every quarter of an hour goes on without a hole and without a double', () => {
    const found = ticks('*/15 * * * *', 'Europe/Berlin', '2026-03-29T00:00Z', '2026-03-29T03:00Z');
    expect(found).toEqual(everyMinutes(15, '2026-03-29T00:00Z', 12));
  });
});

describe('the clocks go back (Berlin, 25 October 2026, 03:00 to 02:00)', () => {
  const day = ['2026-10-24T12:00Z', '2026-10-25T12:00Z'] as const;

  test.each([
    ['a time that occurs twice ticks once, at the first of both', '30 2 * * *', ['2026-10-25T00:30Z']],
    ['two times that occur twice tick once each', '0,30 2 * * *', ['2026-10-25T00:00Z', '2026-10-25T00:30Z']],
    ['a range over the hour ticks once an hour', '30 2-3 * * *', ['2026-10-25T00:30Z', '2026-10-25T02:30Z']],
    ['midnight does not move', '0 0 * * *', ['2026-10-24T22:00Z']],
    [
      'every second hour ticks as often as its time is shown',
      '0 */2 * * *',
      [
        '2026-10-24T14:00Z',
        '2026-10-24T16:00Z',
        '2026-10-24T18:00Z',
        '2026-10-24T20:00Z',
        '2026-10-24T22:00Z',
        '2026-10-25T00:00Z',
        '2026-10-25T01:00Z',
        '2026-10-25T03:00Z',
        '2026-10-25T05:00Z',
        '2026-10-25T07:00Z',
        '2026-10-25T09:00Z',
        '2026-10-25T11:00Z',
      ],
    ],
  ])('%s', (_what, line, expected) => {
    expect(ticks(line, 'Europe/Berlin', ...day)).toEqual(expected);
  });

  test('every quarter of an hour goes on through both hours', () => {
    const found = ticks('*/15 * * * *', 'Europe/Berlin', '2026-10-24T23:00Z', '2026-10-25T03:00Z');
    expect(found).toEqual(everyMinutes(15, '2026-10-24T23:00Z', 16));
  });
});

function everyMinutes(minutes: number, after: string, count: number): string[] {
  return Array.from({ length: count }, (_, index) =>
    new Date(Date.parse(after) + (index + 1) * minutes * 60_000).toISOString().replace(':00.000Z', 'Z'),
  );
}

describe('the calendar', () => {
  test.each([
    [
      '29 February comes in leap years only',
      '0 0 29 2 *',
      '2026-01-01T00:00Z',
      '2033-01-01T00:00Z',
      ['2028-02-29T00:00Z', '2032-02-29T00:00Z'],
    ],
    [
      '29 February skips 2100, which is no leap year',
      '0 0 29 2 *',
      '2096-03-01T00:00Z',
      '2105-01-01T00:00Z',
      ['2104-02-29T00:00Z'],
    ],
    [
      'day 31 skips the short months',
      '0 6 31 * *',
      '2026-01-01T00:00Z',
      '2026-12-31T23:00Z',
      [
        '2026-01-31T06:00Z',
        '2026-03-31T06:00Z',
        '2026-05-31T06:00Z',
        '2026-07-31T06:00Z',
        '2026-08-31T06:00Z',
        '2026-10-31T06:00Z',
        '2026-12-31T06:00Z',
      ],
    ],
    [
      'L is the last day of a short month too',
      '0 0 L * *',
      '2028-01-01T00:00Z',
      '2028-04-01T00:00Z',
      ['2028-01-31T00:00Z', '2028-02-29T00:00Z', '2028-03-31T00:00Z'],
    ],
    [
      'day of month or day of week, when both are given',
      '0 9 13 * FRI',
      '2026-02-10T00:00Z',
      '2026-02-21T00:00Z',
      ['2026-02-13T09:00Z', '2026-02-20T09:00Z'],
    ],
    ['7 is Sunday', '0 0 * * 7', '2026-01-01T00:00Z', '2026-01-12T00:00Z', ['2026-01-04T00:00Z', '2026-01-11T00:00Z']],
    ['the turn of the year', '59 23 31 12 *', '2026-12-31T00:00Z', '2027-01-02T00:00Z', ['2026-12-31T23:59Z']],
  ])('%s', (...[, line, from, to, expected]) => {
    expect(ticks(line, 'UTC', from, to)).toEqual(expected);
  });

  test('a day that a zone left out does not tick (Samoa had no 30 December 2011)', () => {
    const found = ticks('0 12 * * *', 'Pacific/Apia', '2011-12-29T00:00Z', '2011-12-31T12:00Z');
    expect(found).toEqual(['2011-12-29T22:00Z', '2011-12-30T22:00Z']);
  });

  test('a tick is never found again from within its own minute', () => {
    const tick = Date.parse('2026-05-01T09:00:00Z');
    expect(nextCronTick('0 9 * * *', 'UTC', tick - 1)).toBe(tick);
    expect(nextCronTick('0 9 * * *', 'UTC', tick)).toBe(tick + 86_400_000);
    expect(nextCronTick('0 9 * * *', 'UTC', tick + 500)).toBe(tick + 86_400_000);
  });

  test('a date that does not exist never ticks', () => {
    expect(nextCronTick('0 0 30 2 *', 'UTC', 0)).toBeUndefined();
  });
});

describe('against a search minute by minute', () => {
  // Changes of one hour, of half an hour, at midnight, on the southern half, two hours, and none at all.
  const zones: [string, string][] = [
    ['Europe/Berlin', '2026-03-28'],
    ['Europe/Berlin', '2026-10-24'],
    ['America/New_York', '2026-03-07'],
    ['America/New_York', '2026-10-31'],
    ['Australia/Lord_Howe', '2026-04-04'],
    ['Australia/Lord_Howe', '2026-10-03'],
    ['Africa/Cairo', '2026-04-23'],
    ['Africa/Cairo', '2026-10-29'],
    ['America/Santiago', '2026-04-04'],
    ['America/Santiago', '2026-09-05'],
    ['Antarctica/Troll', '2026-03-28'],
    ['Antarctica/Troll', '2026-10-24'],
    ['Asia/Kolkata', '2026-03-28'],
  ];
  const lines = [
    '30 2 * * *', '0 0 * * *', '15 0 * * *', '45 1 * * *', '30 23 * * 0', '0 1,2,3 * * *', '5,35 0-3 * * *',
    '*/15 * * * *', '0 * * * *', '*/20 1-3 * * *', '17 */3 * * *', '0 12 28 * 1',
  ]; // prettier-ignore

  test.each(zones)('%s around %s', (zone, from) => {
    const start = Date.parse(`${from}T00:00:00Z`);
    const end = start + 2 * 86_400_000;
    const walls = wallsOf(zone, start - 86_400_000, end);
    for (const line of lines) {
      const found = ticks(line, zone, new Date(start).toISOString(), new Date(end).toISOString());
      expect({ line, found }).toEqual({ line, found: searched(line, walls, start) });
    }
  });
});

interface Minute {
  at: number;
  wall: Wall;
}

function wallsOf(zone: string, start: number, end: number): Minute[] {
  const minutes = [];
  for (let at = start; at <= end; at += 60_000) minutes.push({ at, wall: wallTimeAt(zone, at) });
  return minutes;
}

/**
 * The rule, said otherwise: a line with `*` or a step in minute or hour ticks in every minute whose wall time fits. Any
 * other ticks once for each wall time that fits: in the first such minute, or, where the clocks jumped over it, in the
 * first minute after the jump.
 */
function searched(line: string, walls: readonly Minute[], start: number): string[] {
  const [minutes, hours, days, months, weekdays] = line.split(' ').map((field, index) => setOf(field, index));
  const fits = (wall: Wall) => minutes?.has(wall.minute) === true && hours?.has(wall.hour) === true && fitsDay(wall);
  const fitsDay = ({ year, month, day }: Wall) => {
    if (months?.has(month) !== true) return false;
    const weekday = new Date(Date.UTC(year, month - 1, day)).getUTCDay();
    const [dayStar, weekdayStar] = [line.split(' ')[2] === '*', line.split(' ')[4] === '*'];
    const [inDays, inWeekdays] = [days?.has(day) === true, weekdays?.has(weekday) === true];
    if (dayStar || weekdayStar) return inDays && inWeekdays;
    return inDays || inWeekdays;
  };
  const fixed = !/[*/]/.test(line.split(' ').slice(0, 2).join(' '));
  const found: string[] = [];
  const seen = new Set<number>();
  let shown = Infinity;
  for (const { at, wall } of walls) {
    const now = utcOf(wall);
    let ticksNow = fits(wall) && !(fixed && seen.has(now));
    for (let jumped = fixed ? shown + 60_000 : now; jumped < now; jumped += 60_000) {
      const skipped = new Date(jumped);
      ticksNow ||= fits({
        year: skipped.getUTCFullYear(),
        month: skipped.getUTCMonth() + 1,
        day: skipped.getUTCDate(),
        hour: skipped.getUTCHours(),
        minute: skipped.getUTCMinutes(),
      });
    }
    seen.add(now);
    shown = now;
    if (ticksNow && at > start) found.push(new Date(at).toISOString().replace(':00.000Z', 'Z'));
  }
  return found;
}

type Wall = Pick<ReturnType<typeof wallTimeAt>, 'year' | 'month' | 'day' | 'hour' | 'minute'>;

function utcOf({ year, month, day, hour, minute }: Wall): number {
  return Date.UTC(year, month - 1, day, hour, minute);
}

function setOf(field: string, index: number): Set<number> {
  const [low, high] = [
    [0, 59],
    [0, 23],
    [1, 31],
    [1, 12],
    [0, 6],
  ][index] as [number, number];
  const values = new Set<number>();
  for (const part of field.split(',')) {
    const [range = '', step = '1'] = part.split('/');
    const [from = low, to = from] = range === '*' ? [low, high] : range.split('-').map(Number);
    for (let value = from; value <= to; value += Number(step)) values.add(value);
  }
  return values;
}

describe('what is refused', () => {
  test.each([
    ['seconds', '0 0 9 * * *', 'exactly five fields'],
    ['a year', '0 0 9 * * * 2030', 'exactly five fields'],
    ['four fields', '0 9 * *', 'exactly five fields'],
    ['nothing', '', 'exactly five fields'],
    ['a nickname', '@daily', 'exactly five fields'],
    ['a minute that does not exist', '60 * * * *', 'minute (field 1): use 0-59'],
    ['an hour that does not exist', '0 24 * * *', 'hour (field 2): use 0-23'],
    ['day 0', '0 0 0 * *', 'day of month (field 3): use 1-31'],
    ['month 13', '0 0 * 13 *', 'month (field 4): use 1-12'],
    ['weekday 8', '0 0 * * 8', 'day of week (field 5): use 0-7'],
    ['a step of zero', '*/0 * * * *', 'minute (field 1)'],
    ['a range that runs backwards', '0 22-2 * * *', 'hour (field 2)'],
    ['a question mark, whose meaning depends on now', '? * * * *', 'minute (field 1)'],
    ['a plus', '0 0 * * +1', 'day of week (field 5)'],
    ['words', 'a b c d e', 'minute (field 1)'],
    ['a step on one number', '5/10 * * * *', 'minute (field 1)'],
  ])('%s: %s', (_what, line, message) => {
    expect(cronProblem(line)).toContain(message);
  });

  test.each(['* * * * *', '*/5 0-6,22 1,15 JAN-MAR mon-fri', ' 0  9\t* * 1-5 ', '0 0 L * *', '0 0 * * MON#1'])(
    '%s is not',
    (line) => {
      expect(cronProblem(line)).toBeUndefined();
    },
  );
});
