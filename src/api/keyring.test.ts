import { formatKeyring, parseKeyring } from './keyring.js';

const KEY = Buffer.alloc(32, 7).toString('base64');

test('a keyring is read and written as the JSON of its Secret', () => {
  const text = JSON.stringify({ current: 'k2', keys: { k1: KEY, k2: KEY } });
  const keyring = parseKeyring(text);
  expect(keyring.current).toBe('k2');
  expect([...keyring.keys.keys()]).toEqual(['k1', 'k2']);
  expect(keyring.keys.get('k1')?.export().toString('base64')).toBe(KEY);
  expect(formatKeyring(keyring)).toBe(text);
});

test.each([
  ['is no JSON', 'nonsense', 'keys.json must be'],
  ['has no keys', '{"current":"k1"}', 'keys.json must be'],
  ['names a key that is missing', JSON.stringify({ current: 'k2', keys: { k1: KEY } }), 'current names k2'],
  ['has a short key', JSON.stringify({ current: 'k1', keys: { k1: 'c2hvcnQ=' } }), 'key k1 has fewer than 32 bytes'],
])('a keyring that %s is refused without showing a key', (_name, text, message) => {
  expect(() => parseKeyring(text)).toThrow(message);
  expect(() => parseKeyring(text)).not.toThrow(/c2hvcnQ|BwcHBw/);
});
