import { KNOWN_MODELS, defaultModelOf, findModel } from './catalog.js';

test('every model is there once, with amounts that can be billed', () => {
  const names = KNOWN_MODELS.map(({ provider, model }) => `${provider}/${model}`);
  expect(new Set(names).size).toBe(names.length);
  for (const { contextWindow, inputUsd, outputUsd, cacheReadUsd = 0 } of KNOWN_MODELS) {
    expect(Number.isInteger(contextWindow)).toBe(true);
    expect([inputUsd === undefined, outputUsd === undefined]).not.toEqual([true, false]);
    if (inputUsd === undefined) continue;
    expect(Number.isInteger(inputUsd * 1_000_000)).toBe(true);
    expect(outputUsd).toBeGreaterThanOrEqual(inputUsd);
    expect(cacheReadUsd).toBeLessThan(inputUsd);
  }
});

test.each([
  ['its name', 'gpt-4.1', 'gpt-4.1'],
  ['its name with a date', 'gpt-4.1-2025-04-14', 'gpt-4.1'],
  ['its name with a date in one piece', 'claude-haiku-4-5-20251001', 'claude-haiku-4-5'],
  ['a name that only begins alike', 'gpt-4.1-other', undefined],
  ['a model of the same family', 'gpt-4.1-mini', 'gpt-4.1-mini'],
])('a model is found by %s', (_how, model, found) => {
  const provider = model.startsWith('claude') ? 'anthropic' : 'openai';
  expect(findModel(provider, model)?.model).toBe(found);
});

test('a model of another provider is not found', () => {
  expect(findModel('mistral', 'gpt-4.1')).toBeUndefined();
  expect(findModel('boxwright', 'scripted')).toBeUndefined();
});

test('each provider has a default', () => {
  const providers = [...new Set(KNOWN_MODELS.map(({ provider }) => provider))];
  expect(providers.map((provider) => [provider, defaultModelOf(provider)])).toEqual([
    ['anthropic', 'claude-sonnet-5'],
    ['openai', 'gpt-5.5'],
    ['google', 'gemini-3.5-flash'],
    ['mistral', 'mistral-large-latest'],
    ['xai', 'grok-4.3'],
    ['deepseek', 'deepseek-v4-flash'],
  ]);
});
