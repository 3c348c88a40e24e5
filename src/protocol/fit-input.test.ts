import { z } from 'zod';
import { fitInput } from './fit-input.js';
import { TOOL_DEFINITIONS } from './tools-socket.js';

const shell = (input: unknown) => fitInput(TOOL_DEFINITIONS.shell.input, input);

test('what fits is left as it is', () => {
  expect(shell({ command: 'ls', timeoutSeconds: 600 })).toEqual({
    input: { command: 'ls', timeoutSeconds: 600 },
    notes: [],
  });
});

test('a number out of its bounds is moved to the bound, and told', () => {
  expect(shell({ command: 'ls', timeoutSeconds: 900 })).toEqual({
    input: { command: 'ls', timeoutSeconds: 600 },
    notes: ['timeoutSeconds was 900; at most 600 is allowed, so 600 was used'],
  });
  expect(fitInput(TOOL_DEFINITIONS.read.input, { path: 'a', offset: 0, limit: 9e9 })).toEqual({
    input: { path: 'a', offset: 1, limit: 2000 },
    notes: [
      'offset was 0; at least 1 is allowed, so 1 was used',
      'limit was 9000000000; at most 2000 is allowed, so 2000 was used',
    ],
  });
});

test('what the model wrote is not changed by it', () => {
  const written = { command: 'ls', timeoutSeconds: 900 };
  shell(written);
  expect(written.timeoutSeconds).toBe(900);
});

test('texts are never cut: they are told as they are', () => {
  const schema = z.object({ name: z.string().max(3), tags: z.array(z.string()).max(1), kind: z.enum(['a', 'b']) });
  expect(fitInput(schema, { name: 'long', tags: ['x', 'y'], kind: 'c' })).toEqual({
    problem:
      'name is "long", and must be at most 3 characters long; tags is ["x","y"], and must be at most 1 entries long; kind is "c", and must be one of "a", "b"',
  });
});

test.each([
  [{ command: 'ls', timeoutSeconds: 'soon' }, 'timeoutSeconds is "soon", and must be a number'],
  [{ command: 'ls', timeoutSeconds: 1.5 }, 'timeoutSeconds is 1.5, and must be an integer'],
  [{ timeoutSeconds: 5 }, 'command is missing'],
  [{ command: ['ls'], timeoutSeconds: 900 }, 'command is ["ls"], and must be a string'],
  ['ls', 'the input is "ls", and must be an object'],
  [null, 'the input is null, and must be an object'],
  [undefined, 'the input is missing'],
  [{ command: { a: 'x'.repeat(200) } }, `command is {"a":"${'x'.repeat(74)}…, and must be a string`],
])('%j: %s', (input, problem) => {
  expect(shell(input)).toEqual({ problem });
});

test('a form is named', () => {
  const click = fitInput(TOOL_DEFINITIONS.browser_click.input, { ref: 'x1' });
  expect(click).toEqual({ problem: String.raw`ref is "x1", and must be of the form /^(f\d{1,4})?e\d{1,7}$/` });
});
