import type { ToolAnswer } from '../protocol/run.js';
import { layFiles } from './skill-files.js';
import type { ToolCall } from './tools-client.js';

const FILES: Record<string, Buffer> = {
  'scripts/check.sh': Buffer.from('#!/bin/sh\necho ok\n'),
  'logo.png': Buffer.from([0x89, 0x50, 0, 0xff]),
};
const OPENED: ToolAnswer = {
  isError: false,
  result: { slug: 'review', content: '# How', files: Object.keys(FILES).map((path) => ({ path })) },
};

/** Pages of 4 characters. */
function read({ path, offset }: Record<string, unknown>): Promise<ToolAnswer> {
  const file = FILES[String(path)];
  if (file === undefined) return Promise.resolve({ isError: true, result: { error: 'no such file' } });
  const encoding = path === 'logo.png' ? 'base64' : 'utf8';
  const [text, start] = [file.toString(encoding), Number(offset)];
  const nextOffset = start + 4 < text.length ? start + 4 : null;
  return Promise.resolve({ isError: false, result: { encoding, content: text.slice(start, start + 4), nextOffset } });
}

async function laid(answer: ToolAnswer, options: { reads?: typeof read; isFull?: boolean } = {}) {
  const calls: ToolCall[] = [];
  const tools = {
    call: (call: ToolCall) => {
      calls.push(call);
      return Promise.resolve({ isError: options.isFull === true, result: {} });
    },
  };
  const told = await layFiles(answer, { read: options.reads ?? read, tools, signal: new AbortController().signal });
  return { told, calls };
}

test('all files of a skill are put into its directory, which the answer names', async () => {
  const { told, calls } = await laid(OPENED);
  expect(told).toEqual({ ...OPENED, result: { ...OPENED.result, directory: '/workspace/.skills/review' } });
  expect(calls).toEqual(
    Object.entries(FILES).map(([path, bytes]) => ({
      tool: 'put_skill_file',
      input: { slug: 'review', path, content: bytes.toString('base64') },
    })),
  );
});

test.each<[string, ToolAnswer, Parameters<typeof laid>[1]]>([
  ['a refusal', { isError: true, result: { error: 'there is no skill x' } }, {}],
  ['one file of a skill', { isError: false, result: { slug: 'review', path: 'a', content: 'x' } }, {}],
  ['a skill without files', { isError: false, result: { slug: 'review', content: '# How', files: [] } }, {}],
  ['a workspace that is full', OPENED, { isFull: true }],
  ['a file that is gone', { isError: false, result: { slug: 'review', files: [{ path: 'gone' }] } }, {}],
  ['a gateway that is gone', OPENED, { reads: () => Promise.reject(new Error('unreachable')) }],
])('the answer stays as it is: %s', async (_what, answer, options) => {
  expect((await laid(answer, options)).told).toEqual(answer);
});
