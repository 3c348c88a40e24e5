/** A message that reaches a run at work, through the real runner and the real gateway. */
import { AgentRuns } from '../../src/api/v1alpha1/agent-run.js';
import { NAMESPACE } from '../builders/gateway-world.js';
import { PodWorld } from '../builders/pod-world.js';
import { temporaryDirectories } from '../builders/workspace.js';

const SESSION = { sessionId: 's-1' };
const temporary = temporaryDirectories();
let pods: PodWorld;

beforeEach(async () => {
  pods = await PodWorld.start(temporary);
});
afterEach(() => pods.close());

const send = (name: string, message: string) =>
  pods.world.api.seed(AgentRuns, {
    apiVersion: '',
    kind: '',
    metadata: { name, namespace: NAMESPACE },
    spec: { agent: 'helper', ...SESSION, steer: true, message },
    status: { phase: 'running' },
  });

test('the run goes another way before its next step; the next run of the session knows of it', async () => {
  send('helper-2', '/say I stop.');
  const ended = await pods.run('helper-1', { ...SESSION, message: '/shell true\n/shell touch never\n/say Old plan.' });

  expect(ended.status).toMatchObject({ phase: 'done', output: 'I stop.', usage: { steps: 2 } });
  expect(await pods.calls('helper-1')).toHaveLength(1);
  expect(pods.world.run('helper-2').status).toMatchObject({ phase: 'done', reason: 'Delivered', usageFinal: true });
  const said = (await pods.events('helper-1')).flatMap((event) => (event.type === 'message' ? [event.message] : []));
  expect(said.map(({ role }) => role)).toEqual(['user', 'assistant', 'tool', 'user', 'assistant']);
  expect(said[3]).toMatchObject({ text: '/say I stop.', steered: 'helper-2' });

  const pod = pods.world.addRun('helper-3', { ...SESSION, message: 'And now?' }, 'helper-1');
  const { json } = await pods.world.claim(pods.gateway, pod);
  expect(json['history']).toEqual(said);
});

test('a run that has no step left leaves it for its turn', async () => {
  send('helper-2', '/say I stop.');
  const ended = await pods.run('helper-1', { ...SESSION, message: '/say Done.', limits: { stepLimit: 1 } });
  expect(ended.status).toMatchObject({ phase: 'done', output: 'Done.' });
  expect(pods.world.run('helper-2').status).toEqual({ phase: 'running' });
});
