import { FeedAnswer } from '../../protocol/feed.js';
import { assistantMessage, stepEvent, toolEvent, userMessage } from '../../../test/builders/run-events.js';
import { GatewayWorld, NAMESPACE } from '../../../test/builders/gateway-world.js';

const EVENTS = [userMessage(1, 'hello'), toolEvent(2), stepEvent(3), assistantMessage(4, 'done')];
const USER = { role: 'user', content: 'hello' };

async function claimed() {
  const world = new GatewayWorld();
  const token = world.addApiPod('api-1');
  const gateway = world.startGateway();
  const pod = world.addRun('helper-1');
  await world.claim(gateway, pod);
  world.api.clearRecords();
  return { world, gateway, pod, token };
}

test('an API pod sees at once what a run told and what it used, and nothing is written', async () => {
  const { world, gateway, pod, token } = await claimed();
  await world.chat(gateway, pod, { model: 'scripted', messages: [USER] });

  const told = await world.call(gateway, pod, 'events', { epoch: 1, events: [], live: EVENTS });
  const reply = await world.feed(gateway, 'helper-1', token);

  expect(told).toMatchObject({ status: 200, json: { ack: 0, live: 4 } });
  expect(FeedAnswer.parse(reply.json)).toMatchObject({
    uid: world.run('helper-1').metadata.uid,
    usage: { steps: 1 },
    events: EVENTS,
    incomplete: false,
  });
  expect((await world.feed(gateway, 'helper-1', token, 3)).json['events']).toEqual(EVENTS.slice(3));
  expect([...world.api.writes, ...world.api.reads]).toEqual([]);
});

test('what is stored is not told again', async () => {
  const { world, gateway, pod, token } = await claimed();
  await world.call(gateway, pod, 'events', { epoch: 1, events: [], live: EVENTS });

  const stored = await world.call(gateway, pod, 'events', { epoch: 1, events: EVENTS.slice(0, 3) });

  expect(stored.json).toMatchObject({ ack: 3, live: 4 });
  expect((await world.feed(gateway, 'helper-1', token)).json['events']).toEqual(EVENTS.slice(3));
  expect(world.writes('agentrunchunks')).toBe(1);
});

test('a gateway that takes the run over asks to be told everything again', async () => {
  const { world, gateway, pod, token } = await claimed();
  await world.call(gateway, pod, 'events', { epoch: 1, events: [], live: EVENTS });
  world.removeGatewayPod(gateway.name);
  const other = world.startGateway();

  expect(await world.call(other, pod, 'events', { epoch: 1, events: [] })).toMatchObject({
    json: { live: 0, epoch: 2 },
  });
  await world.call(other, pod, 'events', { epoch: 2, events: [], live: EVENTS });
  expect((await world.feed(other, 'helper-1', token)).json['events']).toEqual(EVENTS);
});

test('events out of order are refused', async () => {
  const { world, gateway, pod } = await claimed();

  const reply = await world.call(gateway, pod, 'events', { epoch: 1, events: [], live: EVENTS.toReversed() });

  expect(reply).toMatchObject({ status: 400 });
});

test('a run that this pod does not serve, or that has ended, has no feed', async () => {
  const { world, gateway, pod, token } = await claimed();
  world.addRun('helper-2');
  await world.call(gateway, pod, 'events', { epoch: 1, events: [], live: EVENTS });
  const outcome = { reason: 'Completed', message: '', output: 'done' };
  await world.call(gateway, pod, 'finish', { epoch: 1, events: EVENTS, outcome });

  for (const run of ['helper-1', 'helper-2', 'nobody-3']) {
    expect(await world.feed(gateway, run, token)).toMatchObject({
      status: 404,
      json: { error: 'this pod does not serve the run' },
    });
  }
});

test('the feed is for API pods alone', async () => {
  const { world, gateway, pod, token } = await claimed();
  const api = { namespace: 'boxwright', podName: 'api-1', podUid: 'uid-api-1', run: '' };
  const account = { serviceAccount: 'boxwright-api' };
  const refused = [
    [undefined, 'send the token of an API pod as Authorization: Bearer'],
    [pod.token, 'the token is not for boxwright-gateway'],
    [world.token(pod, { audience: 'boxwright-gateway' }), 'the token is not one of an API pod'],
    [
      world.token({ ...api, namespace: NAMESPACE }, { audience: 'boxwright-gateway', ...account }),
      'the token is not one of this installation',
    ],
    [
      world.token({ ...api, podUid: 'uid-invented' }, { audience: 'boxwright-gateway', ...account }),
      'the pod of the token is not there',
    ],
  ] as const;
  for (const [shown, error] of refused) {
    expect(await world.feed(gateway, 'helper-1', shown)).toMatchObject({ status: 401, json: { error } });
  }
  expect(world.api.reviewed).toEqual([pod.token]);
  const forged = world.token(api, { audience: 'boxwright-gateway', ...account, genuine: false });
  expect(await world.feed(gateway, 'helper-1', forged)).toMatchObject({
    status: 401,
    json: { error: 'the API server does not accept the token' },
  });
  expect(await world.post(gateway, `/internal/v1/runs/${NAMESPACE}/helper-1/feed`, {}, token)).toMatchObject({
    status: 405,
    headers: { allow: 'GET' },
  });
  expect(await world.call(gateway, { ...pod, token }, 'events', { epoch: 1, events: [] })).toMatchObject({
    status: 401,
    json: { error: 'the token is not for boxwright-run' },
  });
});
