/** Questions of an agent, through the real runner and the real gateway. */
import { PodWorld } from '../builders/pod-world.js';
import { temporaryDirectories } from '../builders/workspace.js';

const temporary = temporaryDirectories();
let pods: PodWorld;
beforeEach(async () => {
  pods = await PodWorld.start(temporary);
});
afterEach(() => pods.close());

const SESSION = { sessionId: 's-1' };

test('a question ends the run done, and the next message of the session is its answer', async () => {
  const asked = await pods.run('helper-1', { ...SESSION, message: '/ask Which one? | red | blue\n/say Thank you.' });
  expect(asked.status).toMatchObject({
    phase: 'done',
    reason: 'Completed',
    output: 'Which one?',
    pending: { kind: 'question', text: 'Which one?', choices: ['red', 'blue'] },
  });

  const answered = await pods.run('helper-2', { ...SESSION, message: 'the blue one' }, 'helper-1');
  expect(answered.status).toMatchObject({ phase: 'done', output: 'Thank you.' });
  expect(answered.status?.pending).toBeUndefined();
  // The answer is the result of the call that was open, and no message of a user.
  const messages = (await pods.events('helper-2')).flatMap((event) =>
    event.type === 'message' ? [event.message] : [],
  );
  expect(messages).toEqual([
    {
      role: 'tool',
      callId: asked.status?.pending?.callId,
      tool: 'ask_user',
      result: '{"answer":"user replied: the blue one"}',
      isError: false,
    },
    { role: 'assistant', text: 'Thank you.' },
  ]);
});

test('two questions of one script are two runs, and the history stays whole', async () => {
  await pods.run('helper-1', { ...SESSION, message: '/ask First?\n/ask Second?\n/say Done with both.' });
  const second = await pods.run('helper-2', { ...SESSION, message: 'one' }, 'helper-1');
  expect(second.status).toMatchObject({ output: 'Second?', pending: { text: 'Second?' } });
  const third = await pods.run('helper-3', { ...SESSION, message: 'two' }, 'helper-2');
  expect(third.status).toMatchObject({ phase: 'done', output: 'Done with both.' });
  const fourth = await pods.run('helper-4', { ...SESSION, message: '/say New.' }, 'helper-3');
  expect(fourth.status).toMatchObject({ output: 'New.' });
});

test('an answer whose question is no longer in the transcript is a message like any other', async () => {
  await pods.run('helper-1', { ...SESSION, message: '/ask First?' });
  pods.world.changeRun('helper-1', {
    status: { pending: { kind: 'question', text: 'First?', callId: 'of another call' } },
  });
  const next = await pods.run('helper-2', { ...SESSION, message: '/say Hello.' }, 'helper-1');
  expect(next.status).toMatchObject({ phase: 'done', output: 'Hello.' });
});
