import { createSecretKey } from 'node:crypto';
import { dedupeRunName } from './dedupe-name.js';

const KEYRING = {
  current: 'k1',
  keys: new Map([
    ['k1', createSecretKey(Buffer.alloc(32, 7))],
    ['k2', createSecretKey(Buffer.alloc(32, 8))],
  ]),
};
const PARTS = { agent: 'cleo', triggerUid: 'uid-1', keyId: 'k1', value: '72d3162e-cc78-11e3-81ab-4c9367dc0958' };

describe('the run name of a value', () => {
  it('is the same for the same value, and can be the name of a run', () => {
    expect(dedupeRunName(KEYRING, PARTS)).toBe(dedupeRunName(KEYRING, { ...PARTS }));
    expect(dedupeRunName(KEYRING, PARTS)).toMatch(/^cleo-[0-9a-hjkmnp-tv-z]{26}$/);
  });

  it.each([
    ['value', { value: 'another' }],
    ['trigger', { triggerUid: 'uid-2' }],
    ['key', { keyId: 'k2' }],
    ['boundary between the parts', { triggerUid: 'uid-17', value: PARTS.value.slice(1) }],
  ])('is another one for another %s', (_what, change) => {
    expect(dedupeRunName(KEYRING, { ...PARTS, ...change })).not.toBe(dedupeRunName(KEYRING, PARTS));
  });

  it('takes all 128 bits from the value: times in it mean nothing', () => {
    const times = Array.from({ length: 64 }, (_, i) =>
      dedupeRunName(KEYRING, { ...PARTS, value: `v${i}` })?.slice(5, 15),
    );
    expect(new Set(times).size).toBe(64);
  });

  it('needs the key of the trigger', () => {
    expect(dedupeRunName(KEYRING, { ...PARTS, keyId: 'gone' })).toBeUndefined();
    expect(dedupeRunName(undefined, PARTS)).toBeUndefined();
  });
});
