import { SubtaskSteps } from './subtask-steps.js';

test('calls of one answer get equal parts, and what one leaves goes to those that begin later', () => {
  const steps = new SubtaskSteps('sub', 0);
  steps.begin(10, ['sub', 'read', 'sub', 'sub']);
  expect([steps.take(), steps.take()]).toEqual([3, 3]);
  steps.giveBack(3, 1);
  expect(steps.take()).toBe(6);
  expect(steps.take()).toBe(0);
  steps.giveBack(3, 3);
  steps.giveBack(6, 2);
  expect([steps.settle(), steps.settle()]).toEqual([6, 0]);
});

test('with fewer steps than calls the first ones get one each', () => {
  const steps = new SubtaskSteps('sub', 0);
  steps.begin(2, ['sub', 'sub', 'sub']);
  expect([steps.take(), steps.take(), steps.take()]).toEqual([1, 1, 0]);
});

test('a run near its limit has none', () => {
  const steps = new SubtaskSteps('sub', 0);
  steps.begin(-1, ['sub']);
  expect(steps.take()).toBe(0);
});

test('a call that was approved before the first answer gets them all', () => {
  expect(new SubtaskSteps('sub', 7).take()).toBe(7);
});
