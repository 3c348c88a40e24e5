import { createSecretKey } from 'node:crypto';
import { parseRunAt } from './run-at.js';
import { tickRunName } from './run-name.js';
import { isTimeZone } from './time-zone.js';
import { nextTick, ticksDue, timingProblem } from './timing.js';

const at = (iso: string) => Date.parse(iso);
const iso = (ms: number | undefined) => (ms === undefined ? undefined : new Date(ms).toISOString());

describe('the date of a one-off', () => {
  test.each([
    ['with Z', '2030-01-31T09:00:00Z', 'Europe/Berlin', '2030-01-31T09:00:00.000Z'],
    ['with an offset', '2030-01-31T09:00:00+02:00', 'UTC', '2030-01-31T07:00:00.000Z'],
    ['with an offset behind UTC', '2030-01-31T23:30-0530', 'UTC', '2030-02-01T05:00:00.000Z'],
    ['without an offset it is in the zone', '2030-01-31T09:00', 'Europe/Berlin', '2030-01-31T08:00:00.000Z'],
    ['in summer time', '2030-07-31T09:00:00', 'Europe/Berlin', '2030-07-31T07:00:00.000Z'],
    ['with a space and a fraction', '2030-01-31 09:00:15.750', 'UTC', '2030-01-31T09:00:15.000Z'],
    [
      'a time that is jumped over moves on by the jump',
      '2026-03-29T02:30',
      'Europe/Berlin',
      '2026-03-29T01:30:00.000Z',
    ],
    ['a time that occurs twice is the first of both', '2026-10-25T02:30', 'Europe/Berlin', '2026-10-25T00:30:00.000Z'],
    ['a gap of half an hour', '2026-10-04T02:15', 'Australia/Lord_Howe', '2026-10-03T15:45:00.000Z'],
    ['midnight that is jumped over', '2026-04-24T00:15', 'Africa/Cairo', '2026-04-23T22:15:00.000Z'],
    ['29 February of a leap year', '2028-02-29T12:00', 'UTC', '2028-02-29T12:00:00.000Z'],
  ])('%s: %s in %s', (_what, text, zone, expected) => {
    expect(iso(parseRunAt(text, zone))).toBe(expected);
  });

  test.each([
    '2030-02-30T09:00', '2029-02-29T09:00', '2030-13-01T09:00', '2030-01-01T24:00', '2030-01-01T09:60',
    '2030-01-01', 'tomorrow', '', '1893456000000', '2030-01-01T09:00:00+25:00', '2030-1-1T9:00', '2030-01-01T09:00 UTC',
  ])('%s is none', (text) => {
    expect(parseRunAt(text, 'UTC')).toBeUndefined();
  }); // prettier-ignore
});

describe('time zones', () => {
  test.each(['UTC', 'Europe/Berlin', 'America/Argentina/Buenos_Aires', 'Etc/GMT+5', 'Asia/Kolkata'])('%s', (zone) => {
    expect(isTimeZone(zone)).toBe(true);
  });
  test.each(['+02:00', 'Europe/Nowhere', '', 'Berlin', '__proto__', 'Europe/Berlin ', '../etc'])(
    '%s is none',
    (zone) => {
      expect(isTimeZone(zone)).toBe(false);
    },
  );
});

describe('what is wrong with a timing', () => {
  test.each([
    ['a zone', { cron: '0 9 * * *', timezone: 'Mars/Olympus' }, 'timezone', 'IANA time zone'],
    ['a cron line', { cron: '0 9 * *', timezone: 'UTC' }, 'cron', 'exactly five fields'],
    ['a line that never comes', { cron: '0 0 30 2 *', timezone: 'UTC' }, 'cron', 'never comes'],
    ['a date', { runAt: 'soon', timezone: 'UTC' }, 'runAt', 'date and time'],
  ])('%s', (_what, timing, field, message) => {
    expect(timingProblem(timing)).toEqual({ field, message: expect.stringContaining(message) as string });
  });

  test.each([[{ cron: '0 0 29 2 *', timezone: 'UTC' }], [{ runAt: '2001-01-01T00:00Z', timezone: 'UTC' }]])(
    'nothing: %j',
    (timing) => {
      expect(timingProblem(timing)).toBeUndefined();
    },
  );
});

describe('ticks that are due', () => {
  const daily = { cron: '0 9 * * *', timezone: 'UTC' };
  const minutely = { cron: '* * * * *', timezone: 'UTC' };

  test.each([
    ['nothing before the tick', daily, '2026-05-01T09:00:00Z', '2026-05-02T08:59:59.999Z',
      { next: '2026-05-02T09:00:00.000Z' }],
    ['the tick on time', daily, '2026-05-01T09:00:00Z', '2026-05-02T09:00:00Z',
      { due: '2026-05-02T09:00:00.000Z', next: '2026-05-03T09:00:00.000Z' }],
    ['the last moment of the deadline', daily, '2026-05-01T09:00:00Z', '2026-05-02T09:10:00Z',
      { due: '2026-05-02T09:00:00.000Z', next: '2026-05-03T09:00:00.000Z' }],
    ['too late by a moment', daily, '2026-05-01T09:00:00Z', '2026-05-02T09:10:00.001Z',
      { missed: '2026-05-02T09:00:00.000Z', next: '2026-05-03T09:00:00.000Z' }],
    ['a tick that was handled is not due again', daily, '2026-05-02T09:00:00Z', '2026-05-02T09:05:00Z',
      { next: '2026-05-03T09:00:00.000Z' }],
    ['of five missed minutes only the newest', minutely, '2026-05-02T09:00:00Z', '2026-05-02T09:05:30Z',
      { due: '2026-05-02T09:05:00.000Z', next: '2026-05-02T09:06:00.000Z' }],
    ['after an hour the newest, and the rest is missed', minutely, '2026-05-02T09:00:00Z', '2026-05-02T10:00:30Z',
      { due: '2026-05-02T10:00:00.000Z', missed: '2026-05-02T09:01:00.000Z', next: '2026-05-02T10:01:00.000Z' }],
    ['a date', { runAt: '2026-05-02T09:00Z', timezone: 'UTC' }, '2026-05-01T00:00:00Z', '2026-05-02T09:00:01Z',
      { due: '2026-05-02T09:00:00.000Z' }],
    ['a date that is long over', { runAt: '2026-05-02T09:00Z', timezone: 'UTC' }, '2026-05-01T00:00Z', '2026-05-03T00:00Z',
      { missed: '2026-05-02T09:00:00.000Z' }],
    ['a clock that was set back does not repeat a tick', daily, '2026-05-02T09:00:00Z', '2026-05-02T08:30:00Z',
      { next: '2026-05-03T09:00:00.000Z' }],
  ])('%s', (...[, timing, since, now, expected]) => {
    const { due, missed, next } = ticksDue(timing, at(since), at(now));
    const { due: wantedDue, missed: wantedMissed, next: wantedNext } = expected as { due?: string; missed?: string; next?: string };
    expect([iso(due), iso(missed), iso(next)]).toEqual([wantedDue, wantedMissed, wantedNext]);
  }); // prettier-ignore

  test('a timing without ticks has no next one', () => {
    expect(nextTick({ runAt: '2020-01-01T00:00Z', timezone: 'UTC' }, at('2026-01-01T00:00Z'))).toBeUndefined();
  });
});

describe('the name of a tick’s run', () => {
  const key = createSecretKey(Buffer.alloc(32, 7));
  const run = { agent: 'news', scheduleUid: 'uid-1', tick: at('2026-05-02T09:00:00Z'), attempt: 0 };

  test('is always the same, a DNS label, and begins with the time', () => {
    const name = tickRunName(key, run);
    expect(name).toBe(tickRunName(createSecretKey(Buffer.alloc(32, 7)), { ...run }));
    expect(name).toMatch(/^news-01kqk[0-9a-z]{21}$/);
  });

  test.each([
    ['key', createSecretKey(Buffer.alloc(32, 8)), run],
    ['schedule', key, { ...run, scheduleUid: 'uid-2' }],
    ['attempt', key, { ...run, attempt: 1 }],
    ['tick', key, { ...run, tick: run.tick + 1 }],
  ])('is another one for another %s', (_what, otherKey, other) => {
    expect(tickRunName(otherKey, other).slice(-16)).not.toBe(tickRunName(key, run).slice(-16));
  });

  test('of the longest agent name fits into 63 characters', () => {
    expect(tickRunName(key, { ...run, agent: 'a'.repeat(36) })).toHaveLength(63);
  });
});
