import { hashOfApiKey, isKeyValid } from './api-key-validity.js';
import type { APIKey } from './v1alpha1/api-key.js';

const NOW = Date.parse('2026-06-01T00:00:00Z');
const HASH = 'a'.repeat(64);

function key(spec: Partial<APIKey['spec']>, status: APIKey['status'] = { hash: HASH }, deletionTimestamp?: string) {
  return {
    metadata: { name: 'k', ...(deletionTimestamp === undefined ? {} : { deletionTimestamp }) },
    spec: { revoked: false, readOnly: false, ...spec },
    ...(status === undefined ? {} : { status }),
  };
}

test.each([
  ['issued', key({}), true],
  ['read-only', key({ readOnly: true }), true],
  ['not yet issued', key({}, {}), false],
  ['revoked', key({ revoked: true }), false],
  ['expiring in a second', key({ expiresAt: '2026-06-01T00:00:01Z' }), true],
  ['expiring now', key({ expiresAt: '2026-06-01T00:00:00Z' }), false],
  ['expired', key({ expiresAt: '2026-05-31T23:59:59Z' }), false],
  ['with a time that nobody can read', key({ expiresAt: 'next summer' }), false],
  ['being deleted', key({}, { hash: HASH }, '2026-05-31T00:00:00Z'), false],
])('a key that is %s', (_name, apiKey, valid) => {
  expect(isKeyValid(apiKey, NOW)).toBe(valid);
});

test('a key is stored as SHA-256 in hex', () => {
  expect(hashOfApiKey('bw_test')).toBe('1b5821718fc3bd4ebfb6dab5fb17ba980aa746147a540ade0d79bf8ef9d5c46f');
});
