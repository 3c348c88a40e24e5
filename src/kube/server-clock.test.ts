import type { Clock } from '../runtime/clock.js';
import { ServerClock } from './server-clock.js';

const HOUR = 3_600_000;
const START = Date.parse('2026-01-01T00:00:00Z');

/** A machine whose wall clock is `jump` wrong. */
function machine() {
  const state = { monotonic: 5_000, jump: 0 };
  const own: Clock = {
    now: () => START + state.monotonic + state.jump,
    monotonic: () => state.monotonic,
    after: () => () => undefined,
  };
  const trueTime = () => START + state.monotonic;
  return { state, own, trueTime, header: () => new Date(trueTime()).toUTCString() };
}

test('the own wall clock counts, to the millisecond, while the API server agrees with it', () => {
  const { state, own, trueTime, header } = machine();
  const clock = new ServerClock(own);
  state.monotonic += 1234;
  clock.heard(header());
  state.jump = 700; // a time server that corrects a little
  clock.heard(header());
  expect(clock.now()).toBe(trueTime() + 700);
});

test.each([3 * HOUR, -3 * HOUR])('a jump of the wall clock by %i ms is not followed', (jump) => {
  const { state, own, trueTime, header } = machine();
  const clock = new ServerClock(own);
  clock.heard(header());
  state.jump = jump;
  expect(clock.now()).toBe(trueTime());
  state.monotonic += HOUR;
  expect(clock.now()).toBe(trueTime());
  clock.heard(header());
  expect(clock.now()).toBe(trueTime());
});

test('a wall clock that was wrong from the beginning is replaced by the API server, within a second', () => {
  const { state, own, trueTime, header } = machine();
  state.jump = -2 * HOUR;
  const clock = new ServerClock(own);
  clock.heard(header());
  expect(Math.abs(clock.now() - trueTime())).toBeLessThan(1000);
  state.monotonic += 10 * HOUR;
  expect(Math.abs(clock.now() - trueTime())).toBeLessThan(1000);
});

test('a machine that slept, so that its monotonic clock stood still, is right after one answer', () => {
  const { state, own, trueTime } = machine();
  const clock = new ServerClock(own);
  state.jump = 8 * HOUR;
  clock.heard(new Date(trueTime() + 8 * HOUR).toUTCString());
  expect(clock.now()).toBe(trueTime() + 8 * HOUR);
});

test('time goes on without answers, and answers without a date change nothing', () => {
  const { state, own, trueTime } = machine();
  const clock = new ServerClock(own);
  clock.heard(undefined);
  clock.heard('soon');
  state.monotonic += HOUR;
  expect(clock.now()).toBe(trueTime());
  expect(clock.monotonic()).toBe(state.monotonic);
});
