import { readTranscript } from '../../transcript/chunk-store.js';
import { assistantMessage, toolEvent, userMessage } from '../../../test/builders/run-events.js';
import { GatewayWorld, type GatewayPod } from '../../../test/builders/gateway-world.js';

async function ownedByFirst() {
  const world = new GatewayWorld();
  const [one, two] = [world.startGateway(), world.startGateway()];
  const pod = world.addRun('helper-1');
  await world.claim(one, pod);
  return { world, one, two, pod };
}

const HELLO = { model: 'scripted', messages: [{ role: 'user', content: 'hello' }] };

test.each(['claim', 'events', 'finish', 'chat'] as const)(
  'another gateway pod answers %s with 421 and the address',
  async (call) => {
    const { world, two, pod } = await ownedByFirst();
    world.api.clearRecords();

    const replies = {
      claim: () => world.claim(two, pod),
      events: () => world.call(two, pod, 'events', { epoch: 1, events: [toolEvent(1)] }),
      finish: () =>
        world.call(two, pod, 'finish', {
          epoch: 1,
          events: [],
          outcome: { reason: 'Completed', message: '', output: '' },
        }),
      chat: () => world.chat(two, pod, HELLO),
    };
    const reply = await replies[call]();

    expect(reply.status).toBe(421);
    expect(reply.json).toMatchObject({
      error: 'another gateway pod serves this run: call 10.0.0.1:8443',
      gatewayAddress: '10.0.0.1:8443',
      epoch: 1,
    });
    expect(world.api.writes).toEqual([]);
  },
);

test.each([
  ['gone', (world: GatewayWorld, one: GatewayPod) => world.removeGatewayPod(one.name)],
  ['unready', (world: GatewayWorld, one: GatewayPod) => world.setGatewayPod(one.name, one.uid, false)],
])('when the owner is %s, another takes over with the next fencing token', async (_name, lose) => {
  const { world, one, two, pod } = await ownedByFirst();
  lose(world, one);
  world.api.clearRecords();

  const reply = await world.call(two, pod, 'events', { epoch: 1, events: [] });

  expect(reply).toMatchObject({ status: 200, json: { epoch: 2 } });
  expect(world.run('helper-1').status?.claim).toMatchObject({
    podUid: pod.podUid,
    at: '2026-01-01T00:00:00.000Z',
    gatewayPod: 'gateway-2',
    gatewayUid: 'uid-gateway-2',
    gatewayAddress: '10.0.0.2:8443',
    epoch: 2,
  });
  expect(world.writes('agentruns/status')).toBe(1);
  expect(one.gateway.served.size).toBe(0);
  expect(two.gateway.served.size).toBe(1);
});

test('the pod that lost a run sends its callers to the new one', async () => {
  const { world, one, two, pod } = await ownedByFirst();
  world.setGatewayPod(one.name, one.uid, false);
  await world.call(two, pod, 'events', { epoch: 1, events: [] });

  const reply = await world.chat(one, pod, HELLO);

  expect(reply).toMatchObject({ status: 421, json: { gatewayAddress: '10.0.0.2:8443', epoch: 2 } });
});

test('two pods that take over at once: one does, the other names it', async () => {
  const { world, one, two, pod } = await ownedByFirst();
  const three = world.startGateway();
  world.removeGatewayPod(one.name);

  const replies = await Promise.all(
    [two, three].map((gateway) => world.call(gateway, pod, 'events', { epoch: 1, events: [] })),
  );

  expect(replies.map(({ status }) => status).sort((a, b) => a - b)).toEqual([200, 421]);
  expect(world.run('helper-1').status?.claim?.epoch).toBe(2);
});

test('a take-over continues transcript, sequence and usage where the other stopped', async () => {
  const { world, one, two, pod } = await ownedByFirst();
  const events = [userMessage(1, 'hello'), toolEvent(2), toolEvent(3), assistantMessage(4, 'done')];
  await world.chat(one, pod, HELLO);
  await world.clock.advance(5_000);
  await world.call(one, pod, 'events', { epoch: 1, events: events.slice(0, 2) });
  world.removeGatewayPod(one.name);

  // The runner never saw the acknowledgement and sends everything again.
  const report = await world.call(two, pod, 'events', { epoch: 1, events: events.slice(0, 3) });
  await world.chat(two, pod, HELLO);
  const outcome = { reason: 'Completed', message: '', output: 'done' };
  const finish = await world.call(two, pod, 'finish', { epoch: 2, events: events.slice(3), outcome });

  expect(report.json).toMatchObject({ ack: 3, epoch: 2 });
  expect(finish.status).toBe(200);
  expect(world.run('helper-1').status?.usage?.steps).toBe(2);
  expect(await readTranscript(world.api, world.run('helper-1'))).toEqual({ events, state: 'full' });
});

test('a former owner that still writes a chunk loses nothing and doubles nothing', async () => {
  const { world, one, two, pod } = await ownedByFirst();
  const events = [userMessage(1, 'hello'), toolEvent(2), toolEvent(3)];
  world.setGatewayPod(one.name, one.uid, false);
  await world.call(two, pod, 'events', { epoch: 1, events: [] });
  const loaded = world.call(two, pod, 'events', { epoch: 2, events: events.slice(0, 1) });
  await loaded;
  // As if the old pod had written position 1 in the moment of the take-over.
  const { encodeEvents } = await import('../../transcript/codec.js');
  const { writeChunk, ownerOf } = await import('../../transcript/chunk-store.js');
  await writeChunk(world.api, ownerOf(world.run('helper-1')), 1, await encodeEvents(events.slice(1, 2)));

  const reply = await world.call(two, pod, 'events', { epoch: 2, events: events.slice(1) });

  expect(reply.json).toMatchObject({ ack: 3 });
  expect((await readTranscript(world.api, world.run('helper-1'))).events).toEqual(events);
});

test('a container that starts again in the same pod goes on with its runs', async () => {
  const { world, one, pod } = await ownedByFirst();
  await world.call(one, pod, 'events', { epoch: 1, events: [userMessage(1, 'hello')] });
  const restarted = world.startProcess(one.name, one.uid, one.address);
  expect(restarted.gateway.served.size).toBe(1);

  const reply = await world.call(restarted, pod, 'events', {
    epoch: 1,
    events: [userMessage(1, 'hello'), toolEvent(2)],
  });

  expect(reply).toMatchObject({ status: 200, json: { ack: 2, epoch: 1 } });
  expect((await readTranscript(world.api, world.run('helper-1'))).events).toHaveLength(2);
});

test('a pod that stops answers 503, so that its runs go to another one', async () => {
  const { world, one, pod } = await ownedByFirst();
  one.drain();

  expect(await world.call(one, pod, 'events', { epoch: 1, events: [] })).toMatchObject({
    status: 503,
    headers: { 'retry-after': '1' },
    json: { error: 'this gateway pod is stopping' },
  });
});
