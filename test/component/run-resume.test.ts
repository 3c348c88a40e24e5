/** How a session goes on after a run that did not come to its own end, through the real runner and the real gateway. */
import { assistantMessage, userMessage } from '../builders/run-events.js';
import { temporaryDirectories } from '../builders/workspace.js';
import { startLocalModel, type LocalModel, type LocalModelOptions } from './support/local-model.js';

const SESSION = { sessionId: 's-1' };

const temporary = temporaryDirectories();
let model: LocalModel;

async function start(answers: LocalModelOptions['answers']): Promise<void> {
  model = await startLocalModel(temporary, { answers });
}

afterEach(() => model.close());

/** What the vendor was sent, without the system prompt. */
const sent = (index: number) =>
  ((model.vendor.requests[index]?.body['messages'] ?? []) as { role: string; content: unknown }[]).filter(
    ({ role }) => role !== 'system',
  );

const WRITE = { tool: 'write', input: { path: 'note', content: 'x' } };

test('after an error of the model the next message goes on behind the last complete step', async () => {
  await start([{ calls: [WRITE] }, { fault: 'status', status: 400, message: 'no' }, { text: 'Went on.' }]);
  const failed = await model.pods.run('helper-1', { ...SESSION, message: 'Deploy it.' });
  const next = await model.pods.run('helper-2', { ...SESSION, message: 'Go on.' }, 'helper-1');

  expect(failed.status).toMatchObject({ phase: 'error', reason: 'ModelError' });
  expect(next.status).toMatchObject({ phase: 'done', output: 'Went on.' });
  expect(sent(2)).toMatchObject([
    { role: 'user', content: 'Deploy it.' },
    { role: 'assistant', tool_calls: [{ function: { name: 'write' } }] },
    { role: 'tool', content: expect.not.stringContaining('Interrupted') },
    { role: 'user', content: expect.stringContaining('The model answered with an error.') },
    { role: 'user', content: 'Go on.' },
  ]);
});

test('a run of a manifest goes on with the session that spec.resume led to', async () => {
  await start([{ calls: [WRITE] }, { fault: 'status', status: 400, message: 'no' }, { text: 'Went on.' }]);
  await model.pods.run('helper-1', { message: 'Deploy it.' });
  const pod = model.pods.world.addRun('helper-2', { message: 'Go on.', resume: 'helper-1' }, 'helper-1');
  model.pods.world.changeRun('helper-2', { status: { phase: 'running', sessionId: 's-helper-1' } });
  const next = await model.pods.execute(pod);

  expect(next.status).toMatchObject({ phase: 'done', output: 'Went on.' });
  expect(sent(2).map(({ role }) => role)).toEqual(['user', 'assistant', 'tool', 'user', 'user']);
});

test.each([
  ['was told only', { live: true }],
  ['was stored', { live: false }],
])('a call of a lost run that %s is shown as interrupted, and made by nobody', async (_what, { live }) => {
  await start([{ text: 'Checked.' }]);
  const { world, gateway } = model.pods;
  const lost = world.addRun('helper-1', { ...SESSION, message: 'Deploy it.' });
  await world.claim(gateway, lost);
  const answer = assistantMessage(2, '');
  if (answer.type === 'message' && answer.message.role === 'assistant')
    answer.message.toolCalls = [{ id: 'c1', tool: 'shell', input: '{"command":"deploy"}' }];
  const told = [userMessage(1, 'Deploy it.'), answer];
  await world.call(gateway, lost, 'events', { epoch: 1, ...(live ? { events: [], live: told } : { events: told }) });
  world.changeRun('helper-1', { status: { phase: 'error', reason: 'NodeLost', message: 'gone' } });
  await world.clock.advance(5_000);
  // Compressing takes a thread: a look at the clock does not wait for it.
  while (gateway.gateway.served.size > 0) await new Promise((resolve) => setImmediate(resolve));

  const next = await model.pods.run('helper-2', { ...SESSION, message: 'And?' }, 'helper-1');

  expect(next.status).toMatchObject({ phase: 'done', output: 'Checked.' });
  expect(sent(0)).toMatchObject([
    { role: 'user', content: 'Deploy it.' },
    { role: 'assistant', tool_calls: [{ function: { name: 'shell', arguments: '{"command":"deploy"}' } }] },
    { role: 'tool', content: expect.stringMatching(/Interrupted: .* Check what it did before you call it again/) },
    { role: 'user', content: expect.stringContaining('The node of the run is gone.') },
    { role: 'user', content: 'And?' },
  ]);
  expect(await model.pods.calls('helper-2')).toEqual([]);
});

test('a run that was lost before it told anything leaves its message', async () => {
  await start([{ text: 'Here.' }]);
  const { world, gateway } = model.pods;
  await world.claim(gateway, world.addRun('helper-1', { ...SESSION, message: 'Deploy it.' }));
  world.changeRun('helper-1', { status: { phase: 'error', reason: 'Evicted', message: 'gone' } });

  await model.pods.run('helper-2', { ...SESSION, message: 'And?' }, 'helper-1');

  expect(sent(0).map(({ content }) => content)).toEqual([
    'Deploy it.',
    expect.stringContaining('The pod was evicted'),
    'And?',
  ]);
});
