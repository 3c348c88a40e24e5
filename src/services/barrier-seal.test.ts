import { createSecretKey } from 'node:crypto';
import { macOf } from '../api/keyring.js';
import type { Keyring } from '../api/keyring.js';
import { createBarrierSeal } from './barrier-seal.js';

const key = (letter: string) => createSecretKey(Buffer.alloc(32, letter));
const ringOf = (current: string, ...ids: string[]): Keyring => ({
  current,
  keys: new Map([current, ...ids].map((id) => [id, key(id.slice(0, 1))])),
});
const sealWith = (keyring: Keyring | undefined, known = keyring) => {
  const reader = {
    keyring,
    ensured: [] as (string | undefined)[],
    ensure: (keyId: string | undefined) => {
      reader.ensured.push(keyId);
      reader.keyring = known;
      return Promise.resolve();
    },
  };
  return { ...createBarrierSeal(reader), reader };
};
const TEXT = '{"kind":"Agent","resourceVersion":"1"}';
const bytes = Buffer.from(TEXT);

test('a pod with the same keyring takes it, whichever of its keys is current', async () => {
  const mark = sealWith(ringOf('a', 'b')).of(TEXT);
  await expect(sealWith(ringOf('b', 'a')).isGenuine(mark, bytes)).resolves.toBe(true);
});

test('a key that this pod has not read yet is read first', async () => {
  const old = sealWith(ringOf('a'), ringOf('née: 1', 'a'));
  await expect(old.isGenuine(sealWith(ringOf('née: 1')).of(TEXT), bytes)).resolves.toBe(true);
  expect(old.reader.ensured).toEqual(['née: 1']);
});

test.each([
  ['another text', () => sealWith(ringOf('a')).of(`${TEXT} `)],
  ['another key of that id', () => sealWith({ current: 'a', keys: new Map([['a', key('z')]]) }).of(TEXT)],
  ['an unknown key', () => sealWith(ringOf('x')).of(TEXT)],
  ['a MAC that the keyring made for something else', () => `YQ.${macOf(key('a'), ['v1', TEXT]).toString('base64url')}`],
  ['no MAC', () => 'YQ.'],
  ['nothing', () => undefined],
  ['two of them', () => [sealWith(ringOf('a')).of(TEXT) ?? '', '']],
])('%s is no seal', async (_what, mark) => {
  await expect(sealWith(ringOf('a')).isGenuine(mark(), bytes)).resolves.toBe(false);
});

test('without a keyring nothing is sealed and nothing taken', async () => {
  expect(sealWith(undefined).of(TEXT)).toBeUndefined();
  await expect(sealWith(undefined).isGenuine(sealWith(ringOf('a')).of(TEXT), bytes)).resolves.toBe(false);
});
