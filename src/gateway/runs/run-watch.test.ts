import { AgentRuns } from '../../api/v1alpha1/agent-run.js';
import { KubeConnectionError } from '../../kube/errors.js';
import { toolEvent } from '../../../test/builders/run-events.js';
import { GatewayWorld, NAMESPACE } from '../../../test/builders/gateway-world.js';

async function claimed() {
  const world = new GatewayWorld({ box: { bounds: { heartbeatSeconds: 90 } } });
  const gateway = world.startGateway();
  const pod = world.addRun('helper-1');
  await world.claim(gateway, pod);
  world.api.clearRecords();
  return { world, gateway, pod };
}

test('a run that is silent for longer than its bound ends as HeartbeatLost', async () => {
  const { world, gateway } = await claimed();

  await world.clock.advance(89_000);
  expect(world.run('helper-1').status?.phase).toBe('running');
  await world.clock.advance(2_000);

  expect(world.run('helper-1').status).toMatchObject({
    phase: 'error',
    reason: 'HeartbeatLost',
    message:
      'The run sent nothing for 90 seconds (spec.bounds.heartbeatSeconds of its Box). Check the node and the logs of the pod; start a new run.',
    usageFinal: true,
  });
  expect(world.writes('agentruns/status')).toBe(1);
  expect(gateway.gateway.served.size).toBe(0);
});

test('heartbeats keep a run alive', async () => {
  const { world, gateway, pod } = await claimed();

  for (let i = 0; i < 10; i++) {
    await world.clock.advance(80_000);
    const renewed = { ...pod, token: world.token(pod) };
    expect((await world.call(gateway, renewed, 'events', { epoch: 1, events: [] })).status).toBe(200);
  }
  expect(world.run('helper-1').status?.phase).toBe('running');
  expect(world.api.writes).toEqual([]);
});

test('a late report after the loss is refused', async () => {
  const { world, gateway, pod } = await claimed();
  await world.clock.advance(91_000);

  expect((await world.call(gateway, pod, 'events', { epoch: 1, events: [toolEvent(1)] })).status).toBe(410);
  expect(world.writes('agentrunchunks')).toBe(0);
});

test('the clock starts anew after a take-over, and the old pod does not judge', async () => {
  const { world, gateway, pod } = await claimed();
  const two = world.startGateway();
  await world.clock.advance(80_000);
  world.removeGatewayPod(gateway.name);
  await world.call(two, pod, 'events', { epoch: 1, events: [] });

  await world.clock.advance(85_000);
  expect(world.run('helper-1').status?.phase).toBe('running');
  await world.clock.advance(6_000);
  expect(world.run('helper-1').status?.reason).toBe('HeartbeatLost');
});

test('the clock starts anew after a restart of the process', async () => {
  const { world, gateway } = await claimed();
  await gateway.gateway.watch.stop();
  await world.clock.advance(80_000);
  world.startProcess(gateway.name, gateway.uid, gateway.address);

  await world.clock.advance(85_000);
  expect(world.run('helper-1').status?.phase).toBe('running');
  await world.clock.advance(6_000);
  expect(world.run('helper-1').status?.reason).toBe('HeartbeatLost');
});

test('an outage of the API server is not the silence of a run', async () => {
  const { world, gateway, pod } = await claimed();
  await world.clock.advance(60_000);
  world.api.reviewsFail = true;
  expect((await world.call(gateway, pod, 'events', { epoch: 1, events: [] })).status).toBe(503);
  await world.clock.advance(60_000);
  expect(world.run('helper-1').status?.phase).toBe('running');
});

test('a loss that could not be written is tried again', async () => {
  const { world } = await claimed();
  world.api.failNext({
    verb: 'patch',
    resource: 'agentruns/status',
    error: new KubeConnectionError('away', 'network'),
    times: 3,
  });

  await world.clock.advance(95_000);

  expect(world.run('helper-1').status?.reason).toBe('HeartbeatLost');
});

test('a run that was deleted is forgotten', async () => {
  const { world, gateway } = await claimed();
  world.api.vanish(AgentRuns, `${NAMESPACE}/helper-1`);

  expect(gateway.gateway.served.size).toBe(0);
  await world.clock.advance(200_000);
  expect(world.api.writes).toEqual([]);
});

test('a run that was deleted before a late call of its pod was served is forgotten when it falls silent', async () => {
  const { world, gateway } = await claimed();
  const run = world.run('helper-1');
  world.api.vanish(AgentRuns, `${NAMESPACE}/helper-1`);
  gateway.gateway.served.take(run);

  await world.clock.advance(95_000);

  expect(gateway.gateway.served.size).toBe(0);
});
