import * as fc from '../../test/builders/properties.js';
import { secretIn } from './secret-text.js';

const KEY = 'A1b2C3d4E5f6G7h8I9j0';

test.each([
  [`sk-${KEY}`, 'a key of a model vendor'],
  [`use sk-proj-abc_${KEY}-x`, 'a key of a model vendor'],
  [`x-pk_${KEY}`, 'a key of a model vendor'],
  [`eyJhbGciOiJIUzI1.eyJzdWIiOiIxMjM0.abcdefghij`, 'a JSON Web Token'],
  [`token-eyJhbGciOiJIUzI1.eyJzdWIiOiIxMjM0.abcdefghij`, 'a JSON Web Token'],
  ['https://me:hunter2@example.com', 'a password in an address'],
  [`sk--${KEY}`, undefined],
  [`ask-${KEY}`, undefined],
  [`sk-a-b-c ${KEY}`, undefined],
  ['eyJhbGciOiJIUzI1.eyJzdWIiOiIxMjM0', undefined],
  ['https://me:${PASSWORD}@example.com', undefined],
])('%s: %s', (text, what) => {
  expect(secretIn(text)).toBe(what);
});

/** What the scans stand for; each reads a hostile text once for each of its characters. */
const KEY_OF_VENDOR = /\b(?:sk|rk|pk)[-_](?:[A-Za-z0-9]+[-_])*[A-Za-z0-9]{20,}/;
const WEB_TOKEN = /\beyJ[A-Za-z0-9_-]{10,}\.eyJ[A-Za-z0-9_-]{10,}\.[A-Za-z0-9_-]{10,}/;
const part = fc.constantFrom('sk', 'pk', '-', '_', '.', ' ', 'eyJ', 'x', KEY, 'abcdefghij', 'é');

test('the scans find what the patterns say', () => {
  fc.assert(
    fc.property(fc.array(part, { maxLength: 14 }), (parts) => {
      const text = parts.join('');
      // No boundary of words, but a key all the same.
      fc.pre(!/_(?:sk|pk)[-_]/.test(text));
      expect(secretIn(text) === 'a key of a model vendor').toBe(KEY_OF_VENDOR.test(text));
      if (!KEY_OF_VENDOR.test(text)) expect(secretIn(text) === 'a JSON Web Token').toBe(WEB_TOKEN.test(text));
    }),
    { numRuns: 5000 },
  );
});
