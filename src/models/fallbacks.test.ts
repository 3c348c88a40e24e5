import { fallbacksOf } from './fallbacks.js';

test.each([
  ['openai/gpt-5.5', 'anthropic', 'openai', 'gpt-5.5'],
  ['claude-haiku-4-5', 'anthropic', 'anthropic', 'claude-haiku-4-5'],
  ['gpt-5.5', 'anthropic', 'openai', 'gpt-5.5'],
  ['claude-unheard-of', 'anthropic', 'anthropic', 'claude-unheard-of'],
  ['boxwright/Qwen/Qwen3-32B', 'anthropic', 'boxwright', 'Qwen/Qwen3-32B'],
  ['Qwen/Qwen3-32B', 'boxwright', 'boxwright', 'Qwen/Qwen3-32B'],
  ['gpt-5.5', 'boxwright', 'boxwright', 'gpt-5.5'],
] as const)('%s of an agent of %s is %s %s', (name, own, provider, model) => {
  expect(fallbacksOf([name], own)).toEqual([{ provider, model }]);
});
