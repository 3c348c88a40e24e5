import { redactor } from './redact.js';

test.each([
  ['in texts, as it is and as it stands in an address', ['Bearer a"b/c&d e', 'a%22b%2Fc%26d%20e']],
  ['in names', { 'a"b/c&d e': 1, 'x a"b/c&d e': [null, true] }],
])('values go: %s', (_name, json) => {
  const text = JSON.stringify(redactor(['a"b/c&d e', 'b/c&d'])(json));
  expect(text).toContain('[credential]');
  expect(text).not.toMatch(/b(\/|%2F)c/);
});

test('a number that is a value leaves JSON behind; one that has it in it by chance stays', () => {
  const redact = redactor(['123456789']);
  expect(redact({ account: 123456789, sum: 1234567890, deep: [{ id: '123456789' }] })).toEqual({
    account: '[credential]',
    sum: 1234567890,
    deep: [{ id: '[credential]' }],
  });
});

test('a short value stays, and without values nothing changes', () => {
  const json = { text: 'secret', list: [1, 'secret'] };
  expect(redactor(['secret'])(json)).toEqual(json);
  expect(redactor([])(json)).toBe(json);
});
