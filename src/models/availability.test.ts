import { howToConfigure, whyUnavailable } from './availability.js';

const SECRET_REF = { secretRef: { name: 'vllm', key: 'API_KEY' } };
const OWN_SECRET =
  'kubectl create secret generic models -n bw-lab --from-literal=OPENAI_API_KEY=YOUR-KEY && kubectl label secret models -n bw-lab boxwright.dev/credential=true && kubectl patch box lab --type merge -p \'{"spec":{"credentialsSecret":"models"}}\'';
const PATCH_SECRET =
  'run: kubectl patch secret models -n bw-lab --type merge -p \'{"metadata":{"labels":{"boxwright.dev/credential":"true"}},"stringData":{"OPENAI_API_KEY":"YOUR-KEY"}}\' (before it, where there is no such Secret: kubectl create secret generic models -n bw-lab)';

test.each([
  ['a key that the gateway saw', { availableProviders: ['anthropic'] }, 'anthropic'],
  ['an engine', { engine: 'scripted' }, 'boxwright'],
  ['an endpoint that wants no key', { endpoint: {} }, 'boxwright'],
  ['an endpoint and its key', { endpoint: SECRET_REF, availableProviders: ['boxwright'] }, 'boxwright'],
] as const)('a Box with %s has what its provider needs', (_what, box, provider) => {
  expect(whyUnavailable({ name: 'lab', ...box }, provider)).toBeUndefined();
  expect(howToConfigure({ name: 'lab', ...box }, provider)).toBeNull();
});

test.each([
  [
    'no Secret at all',
    {},
    'neither Box lab nor the installation has a usable key for provider openai',
    `add OPENAI_API_KEY to the Secret of chart value gateway.modelCredentialsSecret, or give the Box a Secret of its own, which it then uses alone: ${OWN_SECRET}`,
  ],
  [
    'a Secret without the key',
    { credentialsSecret: 'models' },
    'Box lab names Secret models, but namespace bw-lab has none with a usable key OPENAI_API_KEY and label boxwright.dev/credential=true',
    PATCH_SECRET,
  ],
  [
    'an address of its own and no Secret',
    { vendors: { openai: { baseUrl: 'https://proxy.example.com/v1' } } },
    "Box lab reaches provider openai at an address of its own, where the installation's key is not sent, and has no key itself",
    `run: ${OWN_SECRET}`,
  ],
])('a Box with %s says what is missing and what to do', (_what, box, missing, fix) => {
  const seen = { name: 'lab', availableProviders: ['anthropic' as const], ...box };
  expect(howToConfigure(seen, 'openai')).toBe(`${missing}; ${fix}`);
  expect(whyUnavailable(seen, 'openai')).toBe(
    `${missing}: runs will end with the error ModelNotConfigured; list_models says what to do`,
  );
});

test('provider boxwright with nothing behind it, or an endpoint without its key', () => {
  expect(howToConfigure({ name: 'lab' }, 'boxwright')).toBe(
    'nothing stands behind provider boxwright in Box lab; run: kubectl patch box lab --type merge -p \'{"spec":{"engine":"scripted"}}\', or set spec.endpoint of the Box',
  );
  expect(howToConfigure({ name: 'lab', endpoint: SECRET_REF, availableProviders: [] }, 'boxwright')).toContain(
    'Box lab names Secret vllm, but namespace bw-lab has none with a usable key API_KEY',
  );
});

test('nobody claims to know what the gateway has not told', () => {
  const unknown =
    'whether Box lab has a usable key for provider openai is not known yet: the gateway tells within a minute, list_models shows it';
  for (const box of [{ name: 'lab' }, { name: 'lab', credentialsSecret: 'models' }]) {
    expect(whyUnavailable(box, 'openai')).toBe(unknown);
    expect(howToConfigure(box, 'openai')).toBe(unknown);
  }
});
