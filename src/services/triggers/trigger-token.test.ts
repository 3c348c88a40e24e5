import { createHmac, createSecretKey } from 'node:crypto';
import type { Keyring } from '../../api/keyring.js';
import { newTokenId, tokenMatches, triggerToken, triggerUrl } from './trigger-token.js';

const KEY = createSecretKey(Buffer.alloc(32, 7));
const KEYRING: Keyring = {
  current: 'k2',
  keys: new Map([
    ['k1', KEY],
    ['k2', createSecretKey(Buffer.alloc(32, 8))],
  ]),
};
const PARTS = { agentId: 'box.agent', slug: 'hook', tokenId: '0123456789abcdef0123456789abcdef' };

describe('triggerToken', () => {
  test('is HMAC-SHA256 over the length-prefixed parts, base64url', () => {
    const text = ['boxwright-trigger-v1', 'box.agent', 'hook', PARTS.tokenId];
    const bytes = text.flatMap((part) => [Buffer.from([0, 0, 0, part.length]), Buffer.from(part)]);
    expect(triggerToken(KEY, PARTS)).toBe(createHmac('sha256', KEY).update(Buffer.concat(bytes)).digest('base64url'));
    expect(triggerToken(KEY, PARTS)).toMatch(/^[A-Za-z0-9_-]{43}$/);
  });

  test.each([
    ['agent', { agentId: 'box.agenth', slug: 'ook' }],
    ['slug', { slug: 'hook2' }],
    ['nonce', { tokenId: 'f'.repeat(32) }],
  ])('another %s is another token', (_name, change) => {
    expect(triggerToken(KEY, { ...PARTS, ...change })).not.toBe(triggerToken(KEY, PARTS));
  });
});

describe('tokenMatches', () => {
  const token = triggerToken(KEY, PARTS);
  const check = { ...PARTS, keyId: 'k1' };

  test('accepts the token of the trigger', () => expect(tokenMatches(KEYRING, check, token)).toBe(true));

  test.each([
    ['another token', check, triggerToken(KEY, { ...PARTS, tokenId: 'f'.repeat(32) })],
    ['a cut token', check, token.slice(0, -1)],
    ['a longer token', check, `${token}A`],
    ['no token', check, ''],
    ['a token of another key', { ...check, keyId: 'k2' }, token],
    ['an unknown key', { ...check, keyId: 'k9' }, token],
    ['an unknown trigger', { agentId: 'box.agent', slug: 'hook' }, token],
    ['a trigger without key', { ...PARTS, keyId: undefined }, token],
  ])('refuses %s', (_name, wanted, presented) => expect(tokenMatches(KEYRING, wanted, presented)).toBe(false));

  test('refuses everything without a keyring', () => expect(tokenMatches(undefined, check, token)).toBe(false));
});

test('the URL is that of the spec', () => {
  expect(triggerUrl('https://a.example.com/', 'box.agent', 'hook', 'TOKEN')).toBe(
    'https://a.example.com/api/t/box.agent/hook/TOKEN',
  );
});

test('a nonce has 128 random bits', () => {
  expect(newTokenId()).toMatch(/^[0-9a-f]{32}$/);
  expect(newTokenId()).not.toBe(newTokenId());
});
