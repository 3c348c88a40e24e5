import { howToConfigure, whyUnavailable } from './availability.js';

test.each([
  ['a Secret with keys', { credentialsSecret: 'models' }, 'anthropic'],
  ['an engine', { engine: 'scripted' }, 'boxwright'],
  ['an endpoint', { endpoint: { baseUrl: 'http://vllm:8000/v1' } }, 'boxwright'],
] as const)('a Box with %s has what its provider needs', (_what, box, provider) => {
  expect(whyUnavailable({ name: 'lab', ...box }, provider)).toBeUndefined();
});

test('a Box without any has neither, and each says what to do', () => {
  expect(whyUnavailable({ name: 'lab' }, 'anthropic')).toContain('has no key for provider anthropic');
  expect(whyUnavailable({ name: 'lab' }, 'boxwright')).toContain('nothing stands behind provider boxwright');
  expect(howToConfigure({ name: 'lab', endpoint: {} }, 'openai')).toBe(
    'this installation has no credentials for provider openai; use provider boxwright',
  );
});
