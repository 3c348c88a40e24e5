import { quoted, refusalOf, sayingOf } from './provider-errors.js';

const SECRET = 'own-secret-of-the-box';

test.each([
  ['Wrong key sk-abcdefgh12345678.', 'Wrong key [redacted]'],
  ['Wrong key: sk-ab***********yz, sorry', 'Wrong key: [redacted], sorry'],
  ['keys: xai_0123456789 and key', 'keys: [redacted] and key'],
  [`${SECRET}${SECRET}`, '[redacted][redacted]'],
  ['two\n  lines', 'two lines'],
])('%j is told as %j', (text, told) => {
  expect(quoted(text, SECRET)).toBe(told);
});

test('no part of the secret is left where a long text is cut', () => {
  for (let before = 8150; before < 8195; before++) {
    const told = quoted(`${' '.repeat(before)}${SECRET}${' '.repeat(9000)}`, SECRET);
    expect(['', '[redacted]', ...Array.from({ length: 11 }, (_, n) => '[redacted]'.slice(0, n))]).toContain(told);
  }
});

test('of a message of any length only the beginning is read', () => {
  const text = JSON.stringify({ error: { message: `no: ${'key_'.repeat(1_000_000)}` } });
  expect(sayingOf({ text, secret: '' })).toBe('no: [redacted]');
});

test('a refusal that nests, or has too many values, says nothing', () => {
  for (const detail of ['['.repeat(100) + ']'.repeat(100), `[${'0,'.repeat(200_000)}0]`]) {
    const text = `{"error":{"message":"no","detail":${detail}}}`;
    const { message } = refusalOf({ provider: 'openai', status: 400, text, keyIs: undefined, secret: '' });
    expect(message).toBe('openai answered HTTP 400.');
  }
});

test.each([
  [400, 'Your credit balance is too low to access the Anthropic API.', true],
  [400, 'invalid model: gpt-9', true],
  [400, 'temperature must be at most 1', false],
  [402, 'Insufficient balance', true],
  [503, 'Overloaded', true],
])('whether another model may answer after %i %s: %s', (status, message, served) => {
  const text = JSON.stringify({ error: { message } });
  const { fields } = refusalOf({ provider: 'anthropic', status, text, keyIs: undefined, secret: '' });
  expect(fields['notServed'] === true).toBe(served);
});
