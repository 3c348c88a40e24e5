/** A run fetches what it started and did not wait for, through the real gateway; calls of one step through the real runner. */
import { AgentRuns, type AgentRun } from '../../src/api/v1alpha1/agent-run.js';
import { AgentSpec, Agents } from '../../src/api/v1alpha1/agent.js';
import { Boxes, BoxSpec } from '../../src/api/v1alpha1/box.js';
import { runPath } from '../../src/protocol/run.js';
import { BOX, NAMESPACE, type GatewayPod, type RunPod } from '../builders/gateway-world.js';
import { startOpenAiServer } from '../builders/openai-server.js';
import { PodWorld } from '../builders/pod-world.js';
import { temporaryDirectories } from '../builders/workspace.js';

const temporary = temporaryDirectories();
let pods: PodWorld;
beforeEach(async () => {
  pods = await PodWorld.start(temporary);
  for (const name of ['writer', 'critic']) {
    pods.world.api.seed(Agents, {
      apiVersion: '',
      kind: '',
      metadata: { name, namespace: NAMESPACE, uid: `uid-${name}` },
      spec: AgentSpec.parse({ name }),
      status: { active: true },
    });
  }
});
afterEach(() => pods.close());

const DEEP = { parent: { name: 'p', uid: 'p', depth: 1, agents: ['boss'], waits: true } };
const children = (of: string) => pods.world.api.all(AgentRuns).filter(({ spec }) => spec.parent?.name === of);

async function claimed(name: string, spec: Partial<AgentRun['spec']> = {}): Promise<RunPod> {
  const pod = pods.world.addRun(name, spec);
  expect((await pods.world.claim(pods.gateway, pod)).status).toBe(200);
  return pod;
}

interface Asked {
  call: number;
  input: object;
  tool?: string;
  gateway?: GatewayPod;
}

async function ask(pod: RunPod, { call, input, tool = 'await_agents', gateway = pods.gateway }: Asked) {
  const body = { epoch: 1, call, tool, input };
  return (await pods.world.post(gateway, runPath(pod.namespace, pod.run, 'tool'), body, pod.token)).json;
}

/** Starts so many runs and gives their ids. */
async function started(pod: RunPod, count: number): Promise<string[]> {
  const ids: string[] = [];
  for (let call = 1; call <= count; call++) {
    const input = { handle: 'writer', message: 'x', wait: false };
    const { result } = await ask(pod, { call, tool: 'call_agent', input });
    ids.push((result as { runId: string }).runId);
  }
  return ids;
}

const end = (name: string | undefined, status: Partial<NonNullable<AgentRun['status']>>) =>
  pods.world.changeRun(name ?? '', { status: { phase: 'done', reason: 'Completed', ...status } });

const isAwaited = (name: string | undefined) => pods.world.run(name ?? '').status?.awaited === true;
const until = async (holds: () => boolean) => {
  while (!holds()) await new Promise(setImmediate);
};

test('it waits for the end of all, and tells status, reason, output and cost of each', async () => {
  const pod = await claimed('helper-1');
  const [first, second] = await started(pod, 2);
  const answer = ask(pod, { call: 3, input: { runIds: [first, second] } });
  await until(() => isAwaited(first) && isAwaited(second));
  const usage = { steps: 1, inputTokens: 1, outputTokens: 1, totalTokens: 2, costUsd: '0.000200' };
  end(first, { output: 'A text.', usage });
  end(second, { phase: 'error', reason: 'ModelError', message: 'it broke' });
  expect(await answer).toEqual({
    isError: false,
    result: {
      runs: [
        { runId: first, status: 'done', output: 'A text.', reason: 'Completed', costUsd: '0.000200' },
        { runId: second, status: 'error', output: null, reason: 'ModelError', message: 'it broke', costUsd: null },
      ],
    },
  });
});

test('after the time it says what there is and which still work; asking again does not begin the time anew', async () => {
  const pod = await claimed('helper-1');
  const [first, second] = await started(pod, 2);
  end(first, { output: 'A text.' });
  const input = { runIds: [first, second], timeoutSeconds: 15 };
  const held = ask(pod, { call: 3, input });
  await until(() => isAwaited(second));
  await pods.world.clock.advance(10_000);
  expect(await held).toEqual({ result: { status: 'running' }, isError: false, again: true });
  const last = ask(pod, { call: 3, input });
  await pods.world.clock.advance(5_000);
  expect(await last).toMatchObject({
    isError: false,
    result: {
      runs: [
        { runId: first, status: 'done', output: 'A text.' },
        { runId: second, status: 'running', output: null },
      ],
      stillWorking: [second],
    },
  });
});

test('no time at all is a look', async () => {
  const pod = await claimed('helper-1');
  const [id] = await started(pod, 1);
  expect(await ask(pod, { call: 2, input: { runIds: [id], timeoutSeconds: 0 } })).toMatchObject({
    isError: false,
    result: { stillWorking: [id] },
  });
  expect(isAwaited(id)).toBe(false);
});

test('of runs that it did not start nothing is told, not even whether they are there', async () => {
  const [mine, other] = [await claimed('helper-1'), await claimed('helper-2')];
  const [foreign = ''] = await started(other, 1);
  for (const [index, id] of [foreign, 'helper-2', 'helper-1', 'nobody'].entries()) {
    expect(await ask(mine, { call: index + 1, input: { runIds: [id], timeoutSeconds: 0 } })).toEqual({
      isError: true,
      result: { error: `this run has started no run ${id}: pass the ids that call_agent returned in this run` },
    });
  }
  expect(isAwaited(foreign)).toBe(false);
});

test('another gateway pod knows what the run started', async () => {
  const pod = await claimed('helper-1');
  const [id] = await started(pod, 1);
  end(id, { output: 'A text.' });
  const gateway = pods.world.startGateway();
  pods.world.removeGatewayPod('gateway-1');
  expect(await ask(pod, { call: 2, input: { runIds: [id] }, gateway })).toMatchObject({
    result: { runs: [{ runId: id, status: 'done' }] },
  });
});

test('a run that was deleted meanwhile is not waited for', async () => {
  const pod = await claimed('helper-1');
  const [id] = await started(pod, 1);
  const answer = ask(pod, { call: 2, input: { runIds: [id] } });
  await until(() => isAwaited(id));
  pods.world.api.vanish(AgentRuns, `${NAMESPACE}/${id ?? ''}`);
  expect(await answer).toMatchObject({ isError: false, result: { runs: [{ runId: id, status: 'deleted' }] } });
});

test('a caller that is told to stop does not go on with the end of its runs', async () => {
  const pod = await claimed('helper-1');
  const [id] = await started(pod, 1);
  const answer = ask(pod, { call: 2, input: { runIds: [id] } });
  await until(() => isAwaited(id));
  pods.world.changeRun('helper-1', { spec: { cancelRequested: true } });
  end(id, { phase: 'cancelled', reason: 'Cancelled' });
  expect(await answer).toEqual({ result: { status: 'running' }, isError: false, again: true });
});

test('a run that was called itself waits for one at a time', async () => {
  const pod = await claimed('helper-1', DEEP);
  const [first, second] = await started(pod, 2);
  const ids = { runIds: [first, second] };
  const held = ask(pod, { call: 3, input: ids });
  await until(() => isAwaited(first));
  expect(isAwaited(second)).toBe(false);
  end(first, { output: 'One.' });
  expect(await held).toMatchObject({ again: true });
  const later = ask(pod, { call: 3, input: ids });
  await until(() => isAwaited(second));
  end(second, { output: 'Two.' });
  expect(await later).toMatchObject({ result: { runs: [{ output: 'One.' }, { output: 'Two.' }] } });
});

test('two calls of agents in one answer of a model overlap, and the step goes on with both', async () => {
  const call = (handle: string) => ({ tool: 'call_agent', arguments: JSON.stringify({ handle, message: 'Work.' }) });
  const model = await startOpenAiServer([{ calls: [call('writer'), call('critic')] }, { text: 'Both are back.' }]);
  try {
    const { metadata, spec } = pods.world.api.all(Boxes)[0] ?? {};
    const endpoint = { baseUrl: `${model.url}/v1`, model: 'local' };
    pods.world.api.seed(Boxes, {
      apiVersion: '',
      kind: '',
      metadata: { ...metadata, name: BOX },
      spec: BoxSpec.parse({ workspace: spec?.workspace, endpoint }),
    });
    const parent = pods.run('helper-1', { message: 'Call both.' });
    // Neither ends before both have begun: one after the other they would never come.
    await until(() => children('helper-1').length === 2);
    for (const child of children('helper-1')) end(child.metadata.name, { output: 'Done.' });
    expect((await parent).status).toMatchObject({ phase: 'done', output: 'Both are back.', usage: { steps: 2 } });
    expect(await pods.calls('helper-1')).toMatchObject([{ isError: false }, { isError: false }]);
  } finally {
    await model.close();
  }
});
