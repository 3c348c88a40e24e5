import { ZodError } from 'zod';
import { pricesIn } from './price-source.js';

test('a price is a number of US dollars, quoted or not; 0 is one', () => {
  expect(pricesIn('openai/own:\n  input: "0.25"\n  output: 0\n')).toEqual({
    'openai/own': { inputMicroUsd: 250_000, outputMicroUsd: 0 },
  });
  expect(pricesIn('')).toEqual({});
});

test.each(['', '""', '" "', 'true', '[]', 'free', '-1'])('%j is no price, and not that of 0', (input) => {
  expect(() => pricesIn(`openai/own:\n  input: ${input}\n  output: 1\n`)).toThrow(ZodError);
});
