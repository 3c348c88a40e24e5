import { statusDiff } from './status-diff.js';

describe('the difference of two statuses', () => {
  test.each([
    ['nothing when they are equal', { a: { b: [1] } }, { a: { b: [1] } }, {}],
    ['everything when there was none', undefined, { a: 1 }, { a: 1 }],
    ['only what changed', { a: 1, b: 2, folded: { runs: 5 } }, { a: 1, b: 3, folded: { runs: 5 } }, { b: 3 }],
    ['null for what is gone', { a: 1, handle: 'x' }, { a: 1 }, { handle: null }],
    ['a whole list', { conditions: [1, 2] }, { conditions: [2] }, { conditions: [2] }],
  ])('is %s', (_name, before, after, patch) => {
    expect(statusDiff(before, after)).toEqual(patch);
  });
});
