import { Pods } from '../../kube/core-types.js';
import { KubeConnectionError } from '../../kube/errors.js';
import { readTranscript } from '../../transcript/chunk-store.js';
import { assistantMessage, outputEvent, stepEvent, toolEvent, userMessage } from '../../../test/builders/run-events.js';
import { apiError } from '../../../test/builders/recording-api.js';
import { GatewayWorld, NAMESPACE, type GatewayPod } from '../../../test/builders/gateway-world.js';

const EVENTS = [userMessage(1, 'hello'), toolEvent(2), stepEvent(3), assistantMessage(4, 'done')];
const COMPLETED = { epoch: 1, events: EVENTS, outcome: { reason: 'Completed', message: '', output: 'done' } };

async function claimed() {
  const world = new GatewayWorld();
  const gateway = world.startGateway();
  const pod = world.addRun('helper-1');
  await world.claim(gateway, pod);
  return { world, gateway, pod };
}

test('a short run makes two status writes and one chunk, and no read', async () => {
  const { world, gateway, pod } = await claimed();
  await world.chat(gateway, pod, { model: 'scripted', messages: [{ role: 'user', content: 'hello' }] });
  await world.call(gateway, pod, 'events', { epoch: 1, events: [] });
  await world.clock.advance(2_500);

  const reply = await world.call(gateway, pod, 'finish', COMPLETED);

  expect(reply).toMatchObject({ status: 200, json: { phase: 'done' } });
  expect(world.api.writes.map(({ verb, resource, key }) => `${verb} ${resource} ${key}`)).toEqual([
    `patch agentruns/status ${NAMESPACE}/helper-1`,
    `create agentrunchunks ${NAMESPACE}/helper-1.00`,
    `patch agentruns/status ${NAMESPACE}/helper-1`,
  ]);
  expect(world.api.reads).toEqual([]);
  const { status } = world.run('helper-1');
  expect(status).toMatchObject({
    phase: 'done',
    reason: 'Completed',
    output: 'done',
    usage: { steps: 1, inputTokens: 2, totalTokens: expect.any(Number), costUsd: '0.000000' },
    usageFinal: true,
    transcript: { state: 'full', chunks: 1, bytes: expect.any(Number), messages: 2 },
    finishedAt: '2026-01-01T00:00:02.500Z',
    duration: '2.5s',
    claim: { podUid: pod.podUid },
  });
  expect(status?.outputTruncated).toBeUndefined();
  expect(await readTranscript(world.api, world.run('helper-1'))).toEqual({ events: EVENTS, state: 'full' });
  expect(gateway.gateway.served.size).toBe(0);
});

test.each([
  ['Completed', 'done'],
  ['StepLimitReached', 'done'],
  ['Cancelled', 'cancelled'],
  ['ModelNotConfigured', 'error'],
  ['ModelError', 'error'],
  ['DeadlineExceeded', 'error'],
  ['RunnerError', 'error'],
  ['Interrupted', 'error'],
])('outcome %s is stored as phase %s', async (reason, phase) => {
  const { world, gateway, pod } = await claimed();

  await world.call(gateway, pod, 'finish', { epoch: 1, events: [], outcome: { reason, message: 'why', output: null } });

  expect(world.run('helper-1').status).toMatchObject({ phase, reason, message: 'why' });
  expect(world.writes('agentrunchunks')).toBe(0);
});

describe('a runner that was told to stop', () => {
  const INTERRUPTED = { epoch: 1, events: [], outcome: { reason: 'Interrupted', message: 'why', output: 'so far' } };

  async function finishedWith(conditions: object[]) {
    const { world, gateway, pod } = await claimed();
    const ref = { namespace: NAMESPACE, name: pod.podName };
    await world.api.patch(Pods, ref, { status: { conditions } }, { type: 'merge', subresource: 'status' });
    world.api.clearRecords();
    await world.call(gateway, pod, 'finish', INTERRUPTED);
    return world;
  }

  const evicted = { type: 'DisruptionTarget', status: 'True', reason: 'EvictionByEvictionAPI' };

  test('because its pod is evicted ends as Evicted, after one read', async () => {
    const world = await finishedWith([evicted]);
    expect(world.run('helper-1').status).toMatchObject({
      phase: 'error',
      reason: 'Evicted',
      message: 'The pod was evicted, as when its node is drained. Continue its session, or start a new run.',
      output: 'so far',
    });
    expect(world.api.reads.map(({ verb, resource }) => `${verb} ${resource}`)).toEqual(['get pods']);
  });

  test.each([
    ['nobody moved it', []],
    ['it was to be moved and stays', [{ ...evicted, status: 'False' }]],
  ])('ends in its own words when %s', async (_what, conditions) => {
    const world = await finishedWith(conditions);
    expect(world.run('helper-1').status).toMatchObject({ reason: 'Interrupted', message: 'why' });
  });

  test('ends in its own words when its pod cannot be read', async () => {
    const { world, gateway, pod } = await claimed();
    world.api.failNext({ verb: 'get', resource: 'pods', error: apiError(503, 'ServiceUnavailable') });
    await world.call(gateway, pod, 'finish', INTERRUPTED);
    expect(world.run('helper-1').status).toMatchObject({ reason: 'Interrupted', message: 'why' });
  });
});

test.each(['Queued', 'NodeLost', 'toString', ''])('a runner cannot report the outcome %p', async (reason) => {
  const { world, gateway, pod } = await claimed();

  await world.call(gateway, pod, 'finish', { epoch: 1, events: [], outcome: { reason, message: '', output: null } });

  expect(world.run('helper-1').status).toMatchObject({
    phase: 'error',
    reason: 'RunnerError',
    message: 'The runner reported an outcome that is not known.',
  });
});

test('a finish that comes again gets the phase that stands and writes nothing', async () => {
  const { world, gateway, pod } = await claimed();
  await world.call(gateway, pod, 'finish', COMPLETED);
  const writes = world.api.writes.length;

  const again = await world.call(gateway, pod, 'finish', {
    ...COMPLETED,
    outcome: { reason: 'RunnerError', message: 'late', output: null },
  });

  expect(again).toMatchObject({ status: 200, json: { phase: 'done' } });
  expect(world.api.writes).toHaveLength(writes);
});

test('two equal finishes at once write one outcome', async () => {
  const { world, gateway, pod } = await claimed();

  const replies = await Promise.all([
    world.call(gateway, pod, 'finish', COMPLETED),
    world.call(gateway, pod, 'finish', COMPLETED),
  ]);

  expect(replies.map(({ status, json }) => [status, json['phase']])).toEqual([
    [200, 'done'],
    [200, 'done'],
  ]);
  expect(world.writes('agentruns/status')).toBe(2);
  expect(world.writes('agentrunchunks')).toBe(1);
});

test('the outcome of the controller wins; usage and transcript of this pod are added to it once', async () => {
  const { world, gateway, pod } = await claimed();
  await world.chat(gateway, pod, { model: 'scripted', messages: [{ role: 'user', content: 'hello' }] });
  await world.call(gateway, pod, 'events', { epoch: 1, events: EVENTS });
  world.changeRun('helper-1', { status: { phase: 'error', reason: 'OOMKilled', message: 'too much' } });
  world.api.clearRecords();

  const late = await world.call(gateway, pod, 'finish', COMPLETED);
  await world.clock.advance(5_000);

  expect(late).toMatchObject({ status: 200, json: { phase: 'error' } });
  expect(world.run('helper-1').status).toMatchObject({
    phase: 'error',
    reason: 'OOMKilled',
    usage: { steps: 1 },
    usageFinal: true,
    transcript: { chunks: 1, messages: 2 },
  });
  expect(world.api.writes.map(({ resource }) => resource)).toEqual(['agentruns/status']);
  expect(gateway.gateway.served.size).toBe(0);
});

/** Compressing takes a thread: a look at the clock does not wait for it. */
async function untilUnserved({ gateway }: GatewayPod): Promise<void> {
  while (gateway.served.size > 0) await new Promise((resolve) => setImmediate(resolve));
}

test('what a lost run told and nobody stored is stored with its end', async () => {
  const { world, gateway, pod } = await claimed();
  await world.call(gateway, pod, 'events', { epoch: 1, events: EVENTS.slice(0, 1), live: EVENTS.slice(1) });
  world.changeRun('helper-1', { status: { phase: 'error', reason: 'NodeLost', message: 'gone' } });

  await world.clock.advance(5_000);
  await untilUnserved(gateway);

  expect((await readTranscript(world.api, world.run('helper-1'))).events).toEqual(EVENTS);
  expect(world.run('helper-1').status).toMatchObject({ usageFinal: true, transcript: { state: 'full', chunks: 2 } });
});

test('a finish of another pod after the end is refused with 410', async () => {
  const { world, gateway, pod } = await claimed();
  const other = world.addPod('helper-1', 'b');
  await world.call(gateway, pod, 'finish', COMPLETED);

  expect((await world.call(gateway, other, 'finish', COMPLETED)).status).toBe(410);
});

test('a conflict is decided again on the newer run', async () => {
  const { world, gateway, pod } = await claimed();
  world.api.failNext({ verb: 'patch', resource: 'agentruns/status', error: apiError(409, 'Conflict'), times: 2 });

  expect((await world.call(gateway, pod, 'finish', COMPLETED)).status).toBe(200);
  expect(world.run('helper-1').status?.phase).toBe('done');
});

test('a finish that broke off between chunk and status can be repeated', async () => {
  const { world, gateway, pod } = await claimed();
  const output = 'long '.repeat(4000);
  const finish = { ...COMPLETED, outcome: { reason: 'Completed', message: '', output } };
  world.api.failNext({ verb: 'patch', resource: 'agentruns/status', error: new KubeConnectionError('cut', 'network') });

  expect((await world.call(gateway, pod, 'finish', finish)).status).toBe(503);
  expect((await world.call(gateway, pod, 'finish', finish)).status).toBe(200);

  expect(world.writes('agentrunchunks')).toBe(1);
  expect(world.run('helper-1').status?.transcript).toMatchObject({ state: 'full', chunks: 1 });
});

test('a long output is cut in the status at a character boundary and whole in the transcript', async () => {
  const { world, gateway, pod } = await claimed();
  const output = `${'a'.repeat(8191)}äöü`;

  await world.call(gateway, pod, 'finish', { ...COMPLETED, outcome: { reason: 'Completed', message: '', output } });

  const { status } = world.run('helper-1');
  expect(status).toMatchObject({ output: 'a'.repeat(8191), outputTruncated: true });
  const { events } = await readTranscript(world.api, world.run('helper-1'));
  expect(events.at(-1)).toEqual({ type: 'output', seq: 5, at: '2026-01-01T00:00:00.000Z', text: output });
});

test('an output that the runner reported itself is not stored a second time', async () => {
  const { world, gateway, pod } = await claimed();
  const output = 'x'.repeat(9000);
  const events = [...EVENTS, outputEvent(5, output)];

  await world.call(gateway, pod, 'finish', { epoch: 1, events, outcome: { reason: 'Completed', message: '', output } });

  expect((await readTranscript(world.api, world.run('helper-1'))).events).toEqual(events);
});

test('in a namespace that is being deleted the outcome is stored although no chunk can be', async () => {
  const { world, gateway, pod } = await claimed();
  world.api.failNext({ verb: 'create', resource: 'agentrunchunks', error: apiError(403, 'Forbidden') });

  expect((await world.call(gateway, pod, 'finish', COMPLETED)).status).toBe(200);
  expect(world.run('helper-1').status).toMatchObject({ phase: 'done', transcript: { state: 'truncated', chunks: 0 } });
});

test('what a run says never reaches a log line', async () => {
  const { world, gateway, pod } = await claimed();
  await world.call(gateway, pod, 'events', { epoch: 1, events: [userMessage(1, 'my secret plan')] });
  await world.call(gateway, pod, 'events', { epoch: 1, events: [userMessage(1, 'another secret plan')] });
  await world.call(gateway, pod, 'finish', {
    epoch: 1,
    events: [],
    outcome: { reason: 'ModelError', message: 'the secret plan failed', output: 'secret plan' },
  });

  expect(gateway.logs.join('\n')).not.toContain('plan');
});
