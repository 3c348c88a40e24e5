import { withText } from './tool-text.js';

const textOf = (result: Record<string, unknown>, isError = false) => withText({ result, isError }).text;

test('a result that is text is read as it is, also when it was cut', () => {
  expect(textOf({ text: '1\ta' })).toBe('1\ta');
  expect(textOf({ text: '1\ta', truncated: true, bytes: 9 })).toBe('1\ta');
  expect(textOf({ error: 'There is no such file or directory.' }, true)).toBe('There is no such file or directory.');
});

test('other results stay JSON', () => {
  expect(textOf({ url: 'https://example.com', text: 'a' })).toBeUndefined();
  expect(textOf({ text: 'a', error: 'b' })).toBeUndefined();
  expect(textOf({ output: 'of something else' })).toBeUndefined();
  expect(textOf({ text: { not: 'a text' } })).toBeUndefined();
});

test.each([
  [{ exitCode: 0, output: 'a "b"\n' }, 'a "b"\n[exit code 0]'],
  [{ exitCode: 0, output: '' }, '[exit code 0]'],
  [{ exitCode: 3, output: 'no' }, 'no\n[exit code 3]'],
  [
    { exitCode: null, signal: 'SIGTERM', error: 'The command was stopped after 4 seconds.', output: 'begun\n' },
    'begun\n[The command was stopped after 4 seconds; ended by SIGTERM]',
  ],
  [
    { exitCode: 0, output: 'head tail', outputBytes: 90_000, logPath: '.runs/a/1.log' },
    'head tail\n[exit code 0; all 90000 bytes of the output are in .runs/a/1.log]',
  ],
  [{ exitCode: 0, directory: 'sub', output: '' }, '[exit code 0; now in sub]'],
  [{ background: 'b1', running: true, output: 'listening\n' }, 'listening\n[background command b1; still running]'],
  [{ background: 'b1', exitCode: null, signal: 'SIGTERM', output: '' }, '[background command b1; ended by SIGTERM]'],
])('a command: %j', (result, text) => {
  expect(withText({ result, isError: false })).toEqual({ result, isError: false, text });
});
