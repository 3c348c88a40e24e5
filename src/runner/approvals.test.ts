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

describe('where files do not stay', () => {
  const shell = tools.find(({ name }) => name === 'shell') as EngineTool;
  const policy = { required: ['shell', 'memory_save'], always: [] };
  const asked = async (tool: EngineTool, filesStay?: boolean) => {
    const around = filesStay === undefined ? {} : { filesStay };
    const { pause } = await gated(tool, policy, around).execute({ command: 'bash x' }, new AbortController().signal);
    return pause?.text;
  };

  test('who approves a call of the pod, and who asks for it, knows that files are gone by then', async () => {
    const gone = 'files that were written before are gone by then.';
    expect(await asked(shell, false)).toBe(
      `May I use shell? {"command":"bash x"}\nThe call is made in a new pod, whose workspace is empty: ${gone}`,
    );
    expect(gated(shell, policy, { filesStay: false }).description).toContain(gone);
  });

  test('nothing is said where they stay, where nobody knows, and of tools that need none', async () => {
    const plain = 'May I use shell? {"command":"bash x"}';
    expect([await asked(shell, true), await asked(shell)]).toEqual([plain, plain]);
    const text = await asked({ ...shell, name: 'memory_save', family: 'memory' }, false);
    expect(text).toBe('May I use memory_save? {"command":"bash x"}');
  });
});
