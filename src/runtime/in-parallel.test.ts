import { inParallel } from './in-parallel.js';

const turn = () => new Promise((resolve) => setImmediate(resolve));

test('works on every item once, in order, and on no more at a time than said', async () => {
  const begun: number[] = [];
  let underWay = 0;
  let most = 0;
  const work = async (item: number) => {
    begun.push(item);
    most = Math.max(most, ++underWay);
    await turn();
    underWay--;
  };
  await inParallel([1, 2, 3, 4, 5, 6, 7], work, 3);
  expect(begun).toEqual([1, 2, 3, 4, 5, 6, 7]);
  expect(most).toBe(3);
});

test('rejects with the first failure, and the rest is worked on all the same', async () => {
  const done: number[] = [];
  const work = async (item: number) => {
    await turn();
    if (item === 1) throw new Error('the first');
    done.push(item);
  };
  await expect(inParallel([1, 2, 3, 4], work, 2)).rejects.toThrow('the first');
  while (done.length < 3) await turn();
  expect(done).toEqual([2, 3, 4]);
});
