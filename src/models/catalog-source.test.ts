import { ZodError } from 'zod';
import { recordingLog } from '../../test/builders/log.js';
import { priceOf } from '../run/usage/prices.js';
import { CatalogSource, factsIn } from './catalog-source.js';

test('a price is a number of US dollars, quoted or not; 0 is one', () => {
  expect(factsIn('openai/own:\n  input: "0.25"\n  output: 0\n').prices).toEqual({
    'openai/own': { inputMicroUsd: 250_000, outputMicroUsd: 0 },
  });
  expect(factsIn('')).toEqual({ prices: {}, windows: {}, outputs: {}, refused: {} });
});

test.each(['', '""', '" "', 'true', '[]', 'free', '-1'])('%j is no price, and not that of 0', (input) => {
  expect(() => factsIn(`openai/own:\n  input: ${input}\n  output: 1\n`)).toThrow(ZodError);
});

test('a context window stands beside a price, or alone', () => {
  const text = 'openai/a: { input: 1, output: 2, contextWindow: 8192 }\nopenai/b: { contextWindow: 4096 }';
  expect(factsIn(text).windows).toEqual({ 'openai/a': 8192, 'openai/b': 4096 });
  expect(Object.keys(factsIn(text).prices)).toEqual(['openai/a']);
});

test.each([
  'openai/a: { input: 1, contextWindow: 8192 }',
  'openai/a: { cacheRead: 1, contextWindow: 8192 }',
  'openai/a: { contextWindow: 12 }',
  'openai/a: { maxOutputTokens: 12 }',
  'openai/a: { refuses: [stream] }',
  'openai/a: {}',
  'openai/a: { contextWindow: many }',
  'openai/a: {}',
])('%s is refused', (text) => expect(() => factsIn(text)).toThrow(ZodError));

describe('the ConfigMap', () => {
  function setup() {
    const { log, lines } = recordingLog();
    let text = '';
    const get = () =>
      Promise.resolve({ apiVersion: 'v1', kind: 'ConfigMap', metadata: { name: 'm' }, data: { 'prices.yaml': text } });
    const source = new CatalogSource({ get }, { namespace: 'n', name: 'm' }, log);
    return { source, lines, write: (next: string) => (text = next) };
  }

  test('wins over the catalogue, and a window alone leaves the price as it is', async () => {
    const { source, write } = setup();
    const price = priceOf(await source.prices(), 'openai', 'gpt-4.1');
    expect(await source.contextWindowOf('openai', 'gpt-4.1')).toBe(1_047_576);
    write('openai/gpt-4.1: { contextWindow: 65536 }');
    expect(await source.contextWindowOf('openai', 'gpt-4.1-2025-04-14')).toBe(65_536);
    expect(priceOf(await source.prices(), 'openai', 'gpt-4.1')).toEqual(price);
    write('');
    expect(await source.contextWindowOf('openai', 'gpt-4.1')).toBe(1_047_576);
  });

  test('that is wrong leaves what was there, and says so', async () => {
    const { source, lines, write } = setup();
    write('openai/own: { contextWindow: 65536 }');
    expect(await source.contextWindowOf('openai', 'own')).toBe(65_536);
    write('openai/own: { contextWindow: none }');
    expect(await source.contextWindowOf('openai', 'own')).toBe(65_536);
    expect(lines.at(-1)?.message).toContain('the former one stays');
  });

  test('a model without a known price has a window and no price, until the ConfigMap gives one', async () => {
    const { source, write } = setup();
    expect(await source.contextWindowOf('anthropic', 'claude-haiku-5-5')).toBe(1_000_000);
    expect(priceOf(await source.prices(), 'anthropic', 'claude-haiku-5-5')).toBeUndefined();
    write('anthropic/claude-haiku-5-5: { input: 0.5, output: 2.5 }');
    expect(priceOf(await source.prices(), 'anthropic', 'claude-haiku-5-5')).toMatchObject({ inputMicroUsd: 500_000 });
    expect(await source.contextWindowOf('anthropic', 'claude-haiku-5-5')).toBe(1_000_000);
  });
});

test('limits and refused parameters stand beside prices and windows', () => {
  const text = 'openai/a: { input: 1, output: 2, maxOutputTokens: 4096 }\nboxwright/b: { refuses: [reasoning] }';
  expect(factsIn(text)).toMatchObject({ outputs: { 'openai/a': 4096 }, refused: { 'boxwright/b': ['reasoning'] } });
  expect(Object.keys(factsIn(text).prices)).toEqual(['openai/a']);
});
