import { chunkName } from '../../api/names.js';
import { AgentRunChunks } from '../../api/v1alpha1/agent-run-chunk.js';
import { AgentRuns } from '../../api/v1alpha1/agent-run.js';
import { readTranscript } from '../../transcript/chunk-store.js';
import { assistantMessage, stepEvent, toolEvent, userMessage } from '../../../test/builders/run-events.js';
import { GatewayWorld, NAMESPACE } from '../../../test/builders/gateway-world.js';

async function claimed() {
  const world = new GatewayWorld();
  const gateway = world.startGateway();
  const pod = world.addRun('helper-1');
  await world.claim(gateway, pod);
  world.api.clearRecords();
  return { world, gateway, pod };
}

const EVENTS = [userMessage(1, 'hello'), toolEvent(2), stepEvent(3), assistantMessage(4, 'done')];

test('a report makes one chunk, owned by the run, whatever the number of its events', async () => {
  const { world, gateway, pod } = await claimed();

  const reply = await world.call(gateway, pod, 'events', { epoch: 1, events: EVENTS });

  expect(reply).toMatchObject({ status: 200, json: { ack: 4, cancel: false, epoch: 1 } });
  expect(world.api.writes.map(({ verb, resource, key }) => `${verb} ${resource} ${key}`)).toEqual([
    `create agentrunchunks ${NAMESPACE}/helper-1.00`,
  ]);
  expect(world.api.reads).toEqual([]);
  const chunk = world.api.peek(AgentRunChunks, `${NAMESPACE}/${chunkName('helper-1', 0)}`);
  expect(chunk?.metadata).toMatchObject({
    labels: { 'boxwright.dev/run': 'helper-1', 'app.kubernetes.io/managed-by': 'boxwright' },
    ownerReferences: [{ kind: 'AgentRun', name: 'helper-1', uid: world.run('helper-1').metadata.uid }],
  });
  expect(await readTranscript(world.api, world.run('helper-1'))).toEqual({ events: EVENTS, state: 'full' });
});

test('a heartbeat writes and reads nothing', async () => {
  const { world, gateway, pod } = await claimed();

  const reply = await world.call(gateway, pod, 'events', { epoch: 1, events: [] });

  expect(reply).toMatchObject({ status: 200, json: { ack: 0, cancel: false, epoch: 1 } });
  expect([...world.api.writes, ...world.api.reads]).toEqual([]);
});

test('every report can be repeated: nothing is written twice', async () => {
  const { world, gateway, pod } = await claimed();
  const reports = EVENTS.map((event) => ({ epoch: 1, events: [event] }));
  for (const report of reports) await world.call(gateway, pod, 'events', report);
  const writes = world.api.writes.length;

  for (const report of [...reports, { epoch: 1, events: EVENTS }, { epoch: 1, events: EVENTS.slice(1, 3) }]) {
    expect(await world.call(gateway, pod, 'events', report)).toMatchObject({ status: 200, json: { ack: 4 } });
  }
  expect(world.api.writes).toHaveLength(writes);
});

test('a report that overlaps an earlier one adds only what is new', async () => {
  const { world, gateway, pod } = await claimed();
  await world.call(gateway, pod, 'events', { epoch: 1, events: EVENTS.slice(0, 2) });
  await world.call(gateway, pod, 'events', { epoch: 1, events: EVENTS });

  expect((await readTranscript(world.api, world.run('helper-1'))).events).toEqual(EVENTS);
});

test('the same sequence with other content is refused with 409', async () => {
  const { world, gateway, pod } = await claimed();
  await world.call(gateway, pod, 'events', { epoch: 1, events: EVENTS });

  const reply = await world.call(gateway, pod, 'events', { epoch: 1, events: [userMessage(1, 'something else')] });

  expect(reply).toMatchObject({ status: 409, json: { error: 'event 1 is stored already with other content' } });
  expect(world.writes('agentrunchunks')).toBe(1);
});

test.each([
  ['falling sequence numbers', [toolEvent(2), toolEvent(1)], 'the sequence numbers of the events must rise from 1'],
  ['a sequence of zero', [toolEvent(0)], 'the sequence numbers of the events must rise from 1'],
  [
    'an unknown event',
    [{ type: 'secret', seq: 1 }],
    'the request does not fit the protocol at events.0.type (invalid_union)',
  ],
])('%s are refused with 400', async (_name, events, error) => {
  const { world, gateway, pod } = await claimed();

  expect(await world.call(gateway, pod, 'events', { epoch: 1, events })).toMatchObject({
    status: 400,
    json: { error },
  });
  expect(world.api.writes).toEqual([]);
});

test('a wish to cancel rides back, also when the run is being deleted', async () => {
  const { world, gateway, pod } = await claimed();
  world.changeRun('helper-1', { spec: { cancelRequested: true } });
  const cancelled = await world.call(gateway, pod, 'events', { epoch: 1, events: [] });

  const other = world.addRun('helper-2');
  await world.claim(gateway, other);
  const run = world.run('helper-2');
  world.api.seed(AgentRuns, { ...run, metadata: { ...run.metadata, deletionTimestamp: '2026-01-01T00:00:00Z' } });
  const deleted = await world.call(gateway, other, 'events', { epoch: 1, events: [] });

  expect([cancelled.json['cancel'], deleted.json['cancel']]).toEqual([true, true]);
});

test('a report after the outcome is refused with 410 and stores nothing', async () => {
  const { world, gateway, pod } = await claimed();
  world.changeRun('helper-1', { status: { phase: 'cancelled', reason: 'Cancelled' } });

  expect((await world.call(gateway, pod, 'events', { epoch: 1, events: EVENTS })).status).toBe(410);
  expect(world.api.writes).toEqual([]);
});

test('a report before the claim is refused with 409', async () => {
  const world = new GatewayWorld();
  const gateway = world.startGateway();
  const pod = world.addRun('helper-1');

  expect((await world.call(gateway, pod, 'events', { epoch: 1, events: EVENTS })).status).toBe(409);
  expect(world.api.writes).toEqual([]);
});

test('usage and transcript of a working run go to its status once in 5 s while they change', async () => {
  const { world, gateway, pod } = await claimed();
  await world.chat(gateway, pod, { model: 'scripted', messages: [{ role: 'user', content: 'hello' }] });
  let seq = 0;
  const report = () => world.call(gateway, pod, 'events', { epoch: 1, events: [toolEvent((seq += 1))] });

  await report();
  await world.clock.advance(4_900);
  expect(world.writes('agentruns/status')).toBe(0);
  await report();
  await world.clock.advance(1_000);
  expect(world.writes('agentruns/status')).toBe(1);
  await world.clock.advance(30_000);
  expect(world.writes('agentruns/status')).toBe(1);
  expect(world.run('helper-1').status).toMatchObject({
    phase: 'running',
    usage: { steps: 1, inputTokens: 2, costUsd: '0.000000' },
    transcript: { state: 'full', chunks: 2 },
  });
});

test('a run with many model calls in a minute writes its status at most 12 times beyond claim and finish', async () => {
  const { world, gateway, pod } = await claimed();
  // Below the step limit, so that every call counts.
  for (let call = 1; call <= 48; call++) {
    await world.chat(gateway, pod, { model: 'scripted', messages: [{ role: 'user', content: 'hello' }] });
    await world.call(gateway, pod, 'events', { epoch: 1, events: [toolEvent(call)] });
    await world.clock.advance(1_250);
  }

  const writes = world.writes('agentruns/status');
  expect(writes).toBeGreaterThanOrEqual(9);
  expect(writes).toBeLessThanOrEqual(12);
  // What kubectl shows is behind by 5 s and a tick of the watch at most: five calls.
  const shown = world.run('helper-1').status?.usage;
  expect(shown?.steps).toBeGreaterThanOrEqual(43);
  expect(shown).toMatchObject({ totalTokens: expect.any(Number), costUsd: '0.000000' });
});

test('a pod that stops stores the usage that it alone knows', async () => {
  const { world, gateway, pod } = await claimed();
  await world.chat(gateway, pod, { model: 'scripted', messages: [{ role: 'user', content: 'hello' }] });

  await gateway.gateway.watch.flush();

  expect(world.run('helper-1').status).toMatchObject({ phase: 'running', usage: { steps: 1 } });
  await gateway.gateway.watch.flush();
  expect(world.writes('agentruns/status')).toBe(1);
});

test('a report whose chunk was written but not answered is stored once', async () => {
  const { world, gateway, pod } = await claimed();
  const { KubeConnectionError } = await import('../../kube/errors.js');
  world.api.failNext({ verb: 'create', error: new KubeConnectionError('cut', 'network'), afterWrite: true });

  expect((await world.call(gateway, pod, 'events', { epoch: 1, events: EVENTS })).status).toBe(503);
  expect((await world.call(gateway, pod, 'events', { epoch: 1, events: EVENTS })).status).toBe(200);
  expect((await readTranscript(world.api, world.run('helper-1'))).events).toEqual(EVENTS);
});
