import { BODY_BASE_BYTES, BodyBudget, STEP_BYTES } from './body-budget.js';

const MIB = 1024 * 1024;

function fixture(maxBytes: number) {
  const budget = new BodyBudget(maxBytes);
  const cut: string[] = [];
  const open = (name: string, address = '10.0.0.1') => budget.open(address, () => cut.push(name));
  return { budget, cut, open };
}

test('200 bodies of 1 MiB that stall hold no more than the budget, and the newest are those that stay', () => {
  const { budget, cut, open } = fixture(64 * MIB);
  for (let n = 0; n < 200; n++) {
    const share = open(`${n}`);
    for (let bytes = STEP_BYTES; bytes <= MIB; bytes += STEP_BYTES) {
      share.holds(bytes);
      expect(budget.bytes).toBeLessThanOrEqual(64 * MIB);
    }
  }
  expect(cut).toHaveLength(137);
  expect(cut).toEqual(Array.from({ length: 137 }, (_, n) => `${n}`));
});

test('bodies of which nothing comes count too', () => {
  const { budget, cut, open } = fixture(MIB);
  for (let n = 0; n < 1000; n++) open(`${n}`);
  expect(cut).toHaveLength(1000 - MIB / BODY_BASE_BYTES);
  expect(budget.bytes).toBe(MIB);
});

test('a byte now and then is no progress: who sends so goes first', () => {
  const { cut, open } = fixture(4 * STEP_BYTES);
  const trickle = open('trickle');
  const quick = open('quick');
  quick.holds(STEP_BYTES);
  trickle.holds(1);
  trickle.holds(2);
  quick.holds(2 * STEP_BYTES);
  trickle.holds(3);
  quick.holds(4 * STEP_BYTES - BODY_BASE_BYTES);
  expect(cut).toEqual(['trickle']);
});

test('the address that holds most loses one, not a slow sender of another address', () => {
  const { cut, open } = fixture(MIB);
  open('phone', '10.0.0.9').holds(1000);
  for (let n = 0; n < 20; n++) open(`flood ${n}`, '10.0.0.1').holds(2 * STEP_BYTES);
  expect(cut.length).toBeGreaterThan(10);
  expect(cut).not.toContain('phone');
});

test('what is released or cut counts no more, and is cut once', () => {
  const { budget, cut, open } = fixture(MIB);
  const first = open('first');
  first.holds(1000);
  first.release();
  first.release();
  first.holds(MIB);
  expect(budget.bytes).toBe(0);
  const large = open('large');
  large.holds(2 * MIB);
  large.holds(3 * MIB);
  large.release();
  expect(cut).toEqual(['large']);
  expect(budget.bytes).toBe(0);
});
