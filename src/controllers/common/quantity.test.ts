import { parseQuantity, sameQuantity } from './quantity.js';

test.each([
  ['1', 1],
  ['1500m', 1.5],
  ['1Gi', 1_073_741_824],
  ['2k', 2000],
  ['1e3', 1000],
  ['1E', 1e18],
  ['.5', 0.5],
  ['100n', 1e-7],
])('%s is a quantity', (text, value) => {
  expect(parseQuantity(text)).toBeCloseTo(value, 12);
});

test.each(['', 'lots', '1 Gi', '1gi', '0x10', '1e', '--1', 'Gi'])('%p is none', (text) => {
  expect(parseQuantity(text)).toBeUndefined();
});

test.each([
  ['1024Mi', '1Gi', true],
  ['1000m', '1', true],
  ['0.5', '500m', true],
  ['1G', '1Gi', false],
  ['restricted', 'restricted', true],
  ['restricted', 'baseline', false],
])('%s and %s are the same amount: %s', (a, b, same) => {
  expect(sameQuantity(a, b)).toBe(same);
});
