import { randomBytes } from 'node:crypto';
import { AgentRuns } from '../../api/v1alpha1/agent-run.js';
import { Jobs, Pods } from '../../kube/core-types.js';
import { GatewayWorld, NAMESPACE, type GatewayPod, type RunPod } from '../../../test/builders/gateway-world.js';

function setUp() {
  const world = new GatewayWorld();
  return { world, gateway: world.startGateway(), pod: world.addRun('helper-1') };
}

function claimWith(world: GatewayWorld, gateway: GatewayPod, pod: RunPod, token: string) {
  return world.claim(gateway, { ...pod, token });
}

test('a genuine token is reviewed once and then known for 30 s', async () => {
  const { world, gateway, pod } = setUp();

  for (let i = 0; i < 5; i++) expect((await world.claim(gateway, pod)).status).toBe(200);
  expect(world.api.reviewed).toEqual([pod.token]);

  await world.clock.advance(30_000);
  expect((await world.claim(gateway, pod)).status).toBe(200);
  expect(world.api.reviewed).toHaveLength(2);
});

test('equal tokens that come at the same time share one review', async () => {
  const { world, gateway, pod } = setUp();

  const replies = await Promise.all(Array.from({ length: 10 }, () => world.claim(gateway, pod)));

  expect(replies.every(({ status }) => status === 200)).toBe(true);
  expect(world.api.reviewed).toHaveLength(1);
});

test('10,000 random tokens cause no TokenReview and hardly a read', async () => {
  const { world, gateway, pod } = setUp();

  for (let i = 0; i < 10_000; i++) {
    const invented = { ...pod, podName: `pod-${i}`, podUid: randomBytes(8).toString('hex') };
    const token = i % 2 === 0 ? randomBytes(60).toString('base64url') : world.token(invented, { genuine: false });
    expect((await claimWith(world, gateway, pod, token)).status).toBe(401);
  }

  expect(world.api.reviewed).toEqual([]);
  expect(world.api.reads.length).toBeLessThanOrEqual(20);
  expect(world.api.writes).toEqual([]);
});

test.each([
  ['no token', undefined, 'send the run token as Authorization: Bearer'],
  ['an expired one', { expiresInSeconds: 0 }, 'the token has expired'],
  ['one for another audience', { audience: 'vault' }, 'the token is not for boxwright-run'],
  ['one of another service account', { serviceAccount: 'default' }, 'the token is not one of a run'],
  ['one of a pod that was replaced', { podUid: 'uid-before' }, 'the pod of the token is not there'],
])('%s is refused without a TokenReview', async (_name, options, error) => {
  const { world, gateway, pod } = setUp();
  const token = options === undefined ? undefined : world.token(pod, options);

  const reply = await world.post(gateway, `/internal/v1/runs/${NAMESPACE}/helper-1/claim`, {}, token);

  expect(reply).toMatchObject({ status: 401, json: { error } });
  expect(world.api.reviewed).toEqual([]);
});

test('forged tokens of a live pod are reviewed three times, then wait; the genuine one is not locked out', async () => {
  const { world, gateway, pod } = setUp();
  await world.claim(gateway, pod);
  const forged = (n: number) => world.token(pod, { genuine: false, expiresInSeconds: 100 + n });

  const statuses: number[] = [];
  for (let i = 0; i < 10; i++) statuses.push((await claimWith(world, gateway, pod, forged(i))).status);

  expect(statuses).toEqual([401, 401, 401, 429, 429, 429, 429, 429, 429, 429]);
  expect(world.api.reviewed).toHaveLength(4);
  await world.clock.advance(29_000);
  expect((await world.claim(gateway, pod)).status).toBe(200);
  await world.clock.advance(2_000);
  expect((await claimWith(world, gateway, pod, forged(11))).status).toBe(401);
});

test('a genuine token whose review names another pod is refused', async () => {
  const { world, gateway, pod } = setUp();
  const other = world.addRun('helper-2');
  world.api.genuine.set(pod.token, {
    username: `system:serviceaccount:${NAMESPACE}:boxwright-runner`,
    podName: other.podName,
    podUid: other.podUid,
    audiences: ['boxwright-run'],
  });

  expect((await world.claim(gateway, pod)).status).toBe(401);
});

test('a token of one run is refused for another', async () => {
  const { world, gateway, pod } = setUp();
  world.addRun('helper-2');

  const reply = await world.claim(gateway, { ...pod, run: 'helper-2' });

  expect(reply).toMatchObject({ status: 403, json: { error: 'the token belongs to another run' } });
  expect(world.api.writes).toEqual([]);
});

test('while the API server cannot review, the answer is 503 with Retry-After', async () => {
  const { world, gateway, pod } = setUp();
  world.api.reviewsFail = true;

  expect(await world.claim(gateway, pod)).toMatchObject({
    status: 503,
    headers: { 'retry-after': '2' },
    json: { error: 'the API server cannot check the token now (no answer)' },
  });
});

test('a pod whose Job is gone, as after a return to the queue, gets 410', async () => {
  const { world, gateway, pod } = setUp();
  world.api.vanish(Jobs, `${NAMESPACE}/helper-1`);

  expect(await world.claim(gateway, pod)).toMatchObject({
    status: 410,
    json: { error: 'the Job of this pod is gone' },
  });
});

test('a run that is gone answers 404', async () => {
  const { world, gateway, pod } = setUp();
  world.api.vanish(AgentRuns, `${NAMESPACE}/helper-1`);

  expect((await world.claim(gateway, pod)).status).toBe(404);
});

test('a pod that has ended cannot act any more', async () => {
  const { world, gateway, pod } = setUp();
  const key = `${NAMESPACE}/${pod.podName}`;
  const known = world.api.peek(Pods, key);
  if (known !== undefined) world.api.seed(Pods, { ...known, status: { phase: 'Failed' } });

  expect((await world.claim(gateway, pod)).status).toBe(401);
  expect(world.api.reviewed).toEqual([]);
});

test('no token ever reaches a log line', async () => {
  const { world, gateway, pod } = setUp();
  await world.claim(gateway, pod);
  world.api.reviewsFail = true;
  await claimWith(world, gateway, pod, world.token(pod, { expiresInSeconds: 300 }));
  await claimWith(world, gateway, pod, 'not-a-token-at-all');

  expect(gateway.logs.length).toBeGreaterThan(0);
  expect(gateway.logs.join('\n')).not.toMatch(/eyJ|signed|forged|not-a-token-at-all/);
});
