/** run_subtask through the real runner and the real gateway, with a server that answers as a model. */
import type { AgentRun } from '../../src/api/v1alpha1/agent-run.js';
import { AgentSpec, Agents } from '../../src/api/v1alpha1/agent.js';
import { Boxes, BoxSpec } from '../../src/api/v1alpha1/box.js';
import { runPath } from '../../src/protocol/run.js';
import { BOX, NAMESPACE } from '../builders/gateway-world.js';
import { startOpenAiServer, type ChatAnswer, type OpenAiServer } from '../builders/openai-server.js';
import { PodWorld } from '../builders/pod-world.js';
import { temporaryDirectories } from '../builders/workspace.js';

const temporary = temporaryDirectories();
let pods: PodWorld;
let model: OpenAiServer;
beforeEach(async () => {
  pods = await PodWorld.start(temporary);
});
afterEach(async () => {
  await pods.close();
  await model.close();
});

/** The model answers so, one request after the other; the agent has these settings. */
async function answering(answers: readonly ChatAnswer[], agent: Record<string, unknown> = {}): Promise<void> {
  model = await startOpenAiServer(answers);
  const [box] = pods.world.api.all(Boxes);
  const spec = BoxSpec.parse({
    workspace: box?.spec.workspace,
    endpoint: { baseUrl: `${model.url}/v1`, model: 'local' },
  });
  pods.world.api.seed(Boxes, { apiVersion: '', kind: '', metadata: { ...box?.metadata, name: BOX }, spec });
  const [helper] = pods.world.api.all(Agents);
  pods.world.api.seed(Agents, {
    apiVersion: '',
    kind: '',
    metadata: { name: 'helper', namespace: NAMESPACE, ...helper?.metadata },
    spec: AgentSpec.parse({ ...helper?.spec, ...agent }),
    status: { active: true },
  });
}

const call = (tool: string, input: object) => ({ tool, arguments: JSON.stringify(input) });
const subtask = (prompt: string, more: object = {}) => call('run_subtask', { prompt, ...more });
const run = (spec: Partial<AgentRun['spec']> = {}) => pods.run('helper-1', { message: 'Do it.', ...spec });
const said = (index: number) => model.requests[index]?.body.messages ?? [];
const toolsOf = (index: number) => (model.requests[index]?.body.tools ?? []).map(({ function: { name } }) => name);
const marks = async (type: 'tool' | 'step') =>
  (await pods.events('helper-1')).flatMap((event) => (event.type === type ? [event.subtask] : []));

test('two of one step work beside each other, each in a context of its own, and count in the run', async () => {
  const read = call('shell', { command: 'echo found' });
  await answering([
    { calls: [subtask('Look for A.'), subtask('Look for B.')] },
    { calls: [read] },
    { calls: [read] },
    { text: 'A is here.' },
    { text: 'B is there.' },
    { text: 'A here, B there.' },
  ]);
  const ended = await run();
  expect(ended.status).toMatchObject({
    phase: 'done',
    output: 'A here, B there.',
    usage: { steps: 6, inputTokens: 60, outputTokens: 30 },
  });
  // The second one has begun before the first one goes on.
  const begun = [1, 2, 3, 4].map((index) => said(index).find(({ role }) => role === 'user')?.content);
  expect(begun).toEqual(['Look for A.', 'Look for B.', 'Look for A.', 'Look for B.']);
  expect(JSON.stringify(said(1))).not.toContain('Do it.');
  expect(said(0)[0]?.content).not.toContain('part of your work');
  expect(said(1)[0]?.content).toContain('part of your work that you gave to yourself');
  expect(toolsOf(0)).toEqual(expect.arrayContaining(['run_subtask', 'ask_user']));
  expect(toolsOf(1)).toEqual(toolsOf(0).filter((name) => !['run_subtask', 'ask_user'].includes(name)));
  // The run reads their last messages alone.
  const results = said(5).filter(({ role }) => role === 'tool');
  expect(results.map(({ content }) => content)).toEqual(['A is here.', 'B is there.']);
});

test('its steps and calls are told with its number, and its messages are not those of the session', async () => {
  await answering([
    { calls: [subtask('Look for A.')] },
    { calls: [call('shell', { command: 'echo found' })] },
    { text: 'A is here.' },
    { text: 'Done.' },
  ]);
  await run({ sessionId: 's-1' });
  expect(await marks('step')).toEqual([1, 1, undefined, undefined]);
  expect(await marks('tool')).toEqual([1, undefined]);
  const pod = pods.world.addRun('helper-2', { sessionId: 's-1', message: 'And?' }, 'helper-1');
  const { json } = await pods.world.claim(pods.gateway, pod);
  expect((json['history'] as { role: string }[]).map(({ role }) => role)).toEqual([
    'user',
    'assistant',
    'tool',
    'assistant',
  ]);
});

test('it gets the tools that it is given, and none that asks a person', async () => {
  await answering(
    [
      { calls: [subtask('Read.', { tools: ['read', 'grep'] }), subtask('Run.', { tools: ['shell'] })] },
      { text: 'Read it.' },
      { text: 'Done.' },
    ],
    { approvals: ['shell'] },
  );
  await run();
  expect(toolsOf(1)).toEqual(['read', 'grep']);
  expect(await pods.calls('helper-1')).toMatchObject([
    { tool: 'run_subtask', isError: false },
    { tool: 'run_subtask', isError: true, result: { error: expect.stringContaining('A subtask has no tool shell.') } },
  ]);
});

test('it works with a model that the agent has, and with no other', async () => {
  await answering(
    [
      { calls: [subtask('Small.', { model: 'small' }), subtask('Other.', { model: 'gpt-5.5' })] },
      { text: 'Small it is.' },
      { text: 'Done.' },
    ],
    { fallbackModels: ['boxwright/small'] },
  );
  await run();
  expect(model.requests.map(({ body }) => body.model)).toEqual(['local', 'small', 'local']);
  expect(await pods.calls('helper-1')).toMatchObject([
    { isError: false },
    { isError: true, result: { error: expect.stringContaining('This agent has no model gpt-5.5. It has boxwright/') } },
  ]);
});

test('the step limit of the run ends it, and leaves the run its last step', async () => {
  const again: ChatAnswer = { calls: [call('shell', { command: 'true' })] };
  await answering([{ calls: [subtask('Never end.')] }, again, again, { text: 'So far.' }, { text: 'Closed.' }]);
  const ended = await run({ limits: { stepLimit: 5 } });
  expect(model.requests.map(({ body }) => body.tool_choice)).toEqual(['auto', 'auto', 'auto', 'none', 'none']);
  expect(ended.status).toMatchObject({ reason: 'StepLimitReached', output: 'Closed.', usage: { steps: 5 } });
  expect(await pods.calls('helper-1')).toContainEqual({
    tool: 'run_subtask',
    isError: false,
    result: { subtask: 1, reason: 'StepLimitReached', steps: 3, output: 'So far.' },
  });
});

test('cancelling the run ends it while it works', async () => {
  await answering([{ calls: [subtask('Think long.')] }, 'hang']);
  const ended = run();
  await model.received(2);
  pods.world.changeRun('helper-1', { spec: { cancelRequested: true } });
  expect((await ended).status).toMatchObject({ phase: 'cancelled', reason: 'Cancelled', usage: { steps: 1 } });
});

test('where the agent may not call others there are none', async () => {
  await answering([{ text: 'Alone.' }], { tools: { agents: false } });
  await run();
  expect(toolsOf(0)).not.toContain('run_subtask');
});

test('a call that still waits is asked for again after a later one was answered', async () => {
  await answering([]);
  const pod = pods.world.addRun('helper-1', {});
  await pods.world.claim(pods.gateway, pod);
  pods.world.api.seed(Agents, {
    apiVersion: '',
    kind: '',
    metadata: { name: 'writer', namespace: NAMESPACE, uid: 'uid-writer' },
    spec: AgentSpec.parse({ name: 'writer' }),
    status: { active: true },
  });
  const ask = async (number: number, tool: string, input: object) => {
    const body = { epoch: 1, call: number, tool, input };
    return pods.world.post(pods.gateway, runPath(pod.namespace, pod.run, 'tool'), body, pod.token);
  };
  const first = ask(1, 'call_agent', { handle: 'writer', message: 'x' });
  expect((await ask(2, 'memory_save', { text: 'A note.' })).json).toMatchObject({ isError: false });
  await pods.world.clock.advance(10_000);
  expect((await first).json).toMatchObject({ again: true });
  const again = ask(1, 'call_agent', { handle: 'writer', message: 'x' });
  await pods.world.clock.advance(10_000);
  expect((await again).json).toMatchObject({ again: true });
  // One that changes something and comes after a later one is not made: the runner has given it up.
  expect((await ask(4, 'memory_save', { text: 'Another note.' })).json).toMatchObject({ isError: false });
  expect((await ask(3, 'memory_save', { text: 'Too late.' })).status).toBe(409);
});
