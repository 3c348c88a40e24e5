import { installMark, installMarkOf, isInstalled } from './installing.js';
import type { InstallState } from './installing.js';

const UNTIL = Date.parse('2026-05-01T10:02:00.000Z');
const meta = (value: string, creationTimestamp = '2026-05-01T10:00:00Z') => ({
  creationTimestamp,
  annotations: { 'boxwright.dev/installing': value },
});

describe('the mark of an install', () => {
  test.each([
    [{ until: UNTIL }, '2026-05-01T10:02:00.000Z'],
    [{ until: UNTIL, first: { name: 'lead', uid: 'u-1' } }, '2026-05-01T10:02:00.000Z lead u-1'],
  ])('%j is written as %s and read back', (mark, text) => {
    expect(installMark(mark)).toBe(text);
    expect(installMarkOf(meta(text))).toEqual(mark);
  });

  test.each(['', 'soon', 'lead u-1'])('%j is no mark', (text) => expect(installMarkOf(meta(text))).toBeUndefined());

  test('an agent without annotations has none', () => expect(installMarkOf({})).toBeUndefined());

  test('a copy that was made an hour after the deadline has none', () => {
    const text = '2026-05-01T10:02:00.000Z lead u-1';
    expect(installMarkOf(meta(text, '2026-05-01T11:01:59Z'))).toBeDefined();
    expect(installMarkOf(meta(text, '2026-05-01T11:02:01Z'))).toBeUndefined();
  });
});

describe('an agent is installed', () => {
  const first = (state?: InstallState) => (name: string) => (name === 'lead' ? state : undefined);
  const follower = { uid: 'u-2', install: { until: UNTIL, first: { name: 'lead', uid: 'u-1' } } };

  test.each([
    ['without a mark', { uid: 'u-1', install: undefined }, undefined, true],
    ['but not as the first one, marked', { uid: 'u-1', install: { until: UNTIL } }, undefined, false],
    ['when the first one has no mark', follower, { uid: 'u-1', install: undefined }, true],
    ['but not while the first one is marked', follower, { uid: 'u-1', install: { until: UNTIL } }, false],
    ['but not when the first one is gone', follower, undefined, false],
    ['but not when a namesake of the first one is there', follower, { uid: 'u-9', install: undefined }, false],
  ])('%s', (_what, agent, leader, installed) => expect(isInstalled(agent, first(leader))).toBe(installed));
});
