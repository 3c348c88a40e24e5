/** Calls that a person must approve, through the real runner and the real gateway. */
import { AgentMemories } from '../../src/api/v1alpha1/agent-memory.js';
import { runPath } from '../../src/protocol/run.js';
import { PodWorld } from '../builders/pod-world.js';
import { temporaryDirectories } from '../builders/workspace.js';

const temporary = temporaryDirectories();
let pods: PodWorld;
const start = async (approvals: string[]) => {
  pods = await PodWorld.start(temporary, { agent: { approvals } });
};
afterEach(() => pods.close());

const SESSION = { sessionId: 's-1', actor: 'bw_12345678' };
const notes = () => pods.world.api.all(AgentMemories).map(({ spec }) => spec.text);

test('an approved call is executed first in the next run, and the agent goes on', async () => {
  await start(['shell']);
  const asked = await pods.run('helper-1', { ...SESSION, message: '/shell echo one\n/shell echo two\n/say Done.' });
  expect(asked.status).toMatchObject({
    phase: 'done',
    output: 'May I use shell? {"command":"echo one"}',
    pending: {
      kind: 'approval',
      text: 'May I use shell? {"command":"echo one"}',
      choices: ['approve', 'approve always', 'deny'],
      tool: 'shell',
      input: '{"command":"echo one"}',
    },
  });
  expect(await pods.calls('helper-1')).toEqual([]);

  // One approval is for one call: the next one asks again.
  const second = await pods.run('helper-2', { ...SESSION, message: 'approve' }, 'helper-1');
  expect(await pods.calls('helper-2')).toEqual([
    { tool: 'shell', isError: false, result: expect.objectContaining({ output: 'one\n' }) },
  ]);
  expect(second.status?.pending).toMatchObject({ tool: 'shell', input: '{"command":"echo two"}' });

  const third = await pods.run('helper-3', { ...SESSION, message: 'deny: no need' }, 'helper-2');
  expect(third.status).toMatchObject({ phase: 'done', output: 'Done.' });
  expect(await pods.calls('helper-3')).toEqual([]);
  const messages = (await pods.events('helper-3')).flatMap((event) =>
    event.type === 'message' ? [event.message] : [],
  );
  expect(messages[0]).toMatchObject({ role: 'tool', result: '{"error":"denied by the user: no need"}', isError: true });
});

test('approve always holds for the tool and the session, also in later runs', async () => {
  await start(['shell', 'memory']);
  await pods.run('helper-1', { ...SESSION, message: '/shell echo one\n/shell echo two\n/say Done.' });
  const second = await pods.run('helper-2', { ...SESSION, message: 'approve always' }, 'helper-1');
  expect(second.status).toMatchObject({ output: 'Done.', approvals: { always: ['shell'] } });
  const third = await pods.run('helper-3', { ...SESSION, message: '/shell echo three\n/say Done.' }, 'helper-2');
  expect(third.status).toMatchObject({ output: 'Done.' });
  expect(await pods.calls('helper-3')).toHaveLength(1);
  // Another tool, and another session, ask.
  const other = await pods.run('helper-4', { ...SESSION, message: '/tool memory_save {"text":"x"}' }, 'helper-3');
  expect(other.status?.pending).toMatchObject({ tool: 'memory_save' });
  const session = await pods.run('helper-5', { sessionId: 's-2', message: '/shell echo four' });
  expect(session.status?.pending).toMatchObject({ tool: 'shell' });
});

test('a run cannot approve', async () => {
  await start(['shell']);
  await pods.run('helper-1', { ...SESSION, message: '/shell echo one\n/say Done.' });
  const second = await pods.run('helper-2', { ...SESSION, actor: 'run:boss-1', message: 'approve' }, 'helper-1');
  expect(second.status).toMatchObject({ output: 'Done.' });
  expect(second.status?.approvals).toBeUndefined();
  expect(await pods.calls('helper-2')).toEqual([]);
});

describe('the gateway', () => {
  test('executes an approved call of its own, once', async () => {
    await start(['memory_save']);
    await pods.run('helper-1', { ...SESSION, message: '/tool memory_save {"text":"kept"}\n/say Done.' });
    expect(notes()).toEqual([]);
    const second = await pods.run('helper-2', { ...SESSION, message: 'approve' }, 'helper-1');
    expect(second.status).toMatchObject({ output: 'Done.', approvals: { call: { tool: 'memory_save', usedBy: 1 } } });
    expect(notes()).toEqual(['kept']);
  });

  test('refuses a runner that does not ask, other arguments, and a second use', async () => {
    await start(['memory']);
    await pods.run('helper-1', { ...SESSION, message: '/tool memory_save {"text":"kept"}' });
    const pod = pods.world.addRun('helper-2', { ...SESSION, message: 'approve' }, 'helper-1');
    await pods.world.claim(pods.gateway, pod);
    const call = async (number: number, tool: string, input: object) => {
      const body = { epoch: 1, call: number, tool, input };
      return (await pods.world.post(pods.gateway, runPath(pod.namespace, pod.run, 'tool'), body, pod.token)).json;
    };
    const error = (tool: string) => ({
      isError: true,
      result: { error: `the call of ${tool} needs the approval of a person, and this run has none for it` },
    });
    expect(await call(1, 'memory_save', { text: 'other' })).toEqual(error('memory_save'));
    expect(await call(2, 'memory_search', {})).toEqual(error('memory_search'));
    expect(await call(3, 'memory_save', { text: 'kept' })).toMatchObject({ isError: false });
    expect(await call(4, 'memory_save', { text: 'kept' })).toEqual(error('memory_save'));
    expect(notes()).toEqual(['kept']);
  });
});

test('arguments that are too large to be kept are an error, not a question', async () => {
  await start(['shell']);
  const run = await pods.run('helper-1', { ...SESSION, message: `/shell echo ${'x'.repeat(17_000)}\n/say Done.` });
  expect(run.status).toMatchObject({ output: 'Done.' });
  expect(await pods.calls('helper-1')).toEqual([
    { tool: 'shell', isError: true, result: { error: expect.stringContaining('too large to be approved') } },
  ]);
});
