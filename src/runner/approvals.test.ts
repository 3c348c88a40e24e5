import { gated } from './approvals.js';
import type { EngineTool } from './engine.js';
import { podTools } from './pod-tools.js';

const client = { call: () => Promise.resolve({ isError: false, result: {} }) };
const tools = podTools({}, { client, offered: 'unknown', egress: 'internet' });

function asks(name: string, required: string[], always: string[] = []): boolean {
  const tool = tools.find((known) => known.name === name) as EngineTool;
  return gated(tool, { required, always }) !== tool;
}

test('an approval of the shell is about what it starts', () => {
  expect(['shell', 'shell_output', 'shell_stop'].map((name) => asks(name, ['shell']))).toEqual([true, false, false]);
  expect(asks('shell_stop', ['shell_stop'])).toBe(true);
  expect(asks('shell', ['shell'], ['shell'])).toBe(false);
});

test('a family is all of its tools', () => {
  expect(['read', 'edit', 'fetch', 'ask_user'].map((name) => asks(name, ['files', 'interact']))).toEqual([
    true,
    true,
    false,
    false,
  ]);
});
