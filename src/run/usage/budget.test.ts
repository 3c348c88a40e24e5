import { addToPeriods, amountOf, periodsOf } from './budget.js';

test('days and months are those of UTC', () => {
  expect(periodsOf('2026-03-01T00:30:00+02:00')).toEqual({ day: '2026-02-28', month: '2026-02' });
});

test('an unknown cost counts as nothing', () => {
  expect(amountOf({ totalTokens: 5 })).toEqual({ tokens: 5, microUsd: 0 });
  expect(amountOf(undefined)).toEqual({ tokens: 0, microUsd: 0 });
});

test('sums of periods add up, and only the latest are kept', () => {
  const days = ['2026-01-30', '2026-01-31', '2026-02-01', '2026-02-02', '2026-02-03', '2026-02-03'];
  const sums = days.reduce<ReturnType<typeof addToPeriods>>(
    (periods, day) => addToPeriods(periods, `${day}T12:00:00Z`, { tokens: 10, microUsd: 3 }),
    [],
  );
  expect(sums).toEqual([
    { period: '2026-01-31', tokens: 10, costMicroUsd: 3 },
    { period: '2026-02-01', tokens: 10, costMicroUsd: 3 },
    { period: '2026-02-02', tokens: 10, costMicroUsd: 3 },
    { period: '2026-02-03', tokens: 20, costMicroUsd: 6 },
    { period: '2026-01', tokens: 20, costMicroUsd: 6 },
    { period: '2026-02', tokens: 40, costMicroUsd: 12 },
  ]);
});
