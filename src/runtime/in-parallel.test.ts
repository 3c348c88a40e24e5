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

test('works on all of them, however many fail, and then rejects with the first failure', async () => {
  const done: number[] = [];
  const work = async (item: number) => {
    await turn();
    if (item < 3) throw new Error(`failure ${item}`);
    await turn();
    done.push(item);
  };
  await expect(inParallel([1, 2, 3, 4], work, 2)).rejects.toThrow('failure 1');
  expect(done).toEqual([3, 4]);
});
