import { FakeClock } from '../../../test/builders/fake-clock.js';
import { RecordingApi, apiError } from '../../../test/builders/recording-api.js';
import { API_VERSION } from '../../api/define-resource.js';
import { BoxSpec, Boxes } from '../../api/v1alpha1/box.js';
import type { EndpointResult } from '../../api/v1alpha1/box.js';
import { Secrets } from '../../kube/core-types.js';
import { createLogger } from '../../observability/logger.js';
import { CachedReads } from '../../kube/cached-reads.js';
import { Credentials } from '../providers/credentials.js';
import { PROBES_OF_A_WORKSPACE, RECHECK_MS, createEndpointStatus } from './endpoint-status.js';
import type { AskedEndpoint, EndpointVerdict } from './verdict.js';
import { projectGatewayBox } from '../../projections/box.js';

const MINUTE = 60_000;
const HOUR = 60 * MINUTE;
const DAY = 24 * HOUR;
const ENDPOINT = { baseUrl: 'http://vllm:8000/v1/', model: 'qwen3', secretRef: { name: 'models' } };
const KEY = 'abc-0123456789';

function setup() {
  const clock = new FakeClock();
  const api = new RecordingApi({ clock });
  const logged: string[] = [];
  const asked: AskedEndpoint[] = [];
  /** What the probe of a server waits for, by address. */
  const slow = new Map<string, Promise<void>>();
  let verdict: EndpointVerdict = { result: 'ToolCallsWork', message: 'fine' };
  const pods = [
    { name: 'gateway-a', uid: 'a', serving: true },
    { name: 'gateway-b', uid: 'b', serving: true },
  ];
  /** A pod of the gateway that has just started. */
  const gateway = (podName: string) =>
    createEndpointStatus({
      api,
      clock,
      log: createLogger('gateway', 'debug', { write: (line) => logged.push(line) }),
      boxes: api.informer({ type: Boxes, project: projectGatewayBox }),
      gateways: { values: () => pods },
      podName,
      credentials: new Credentials(new CachedReads(api, Secrets, clock)),
      probe: async (endpoint) => {
        asked.push(endpoint);
        await slow.get(endpoint.baseUrl);
        return verdict;
      },
    });
  const running: ReturnType<typeof gateway>[] = [];
  return {
    api,
    clock,
    asked,
    logged,
    pods,
    slow,
    answer: (result: EndpointResult, message = 'fine') => (verdict = { result, message }),
    start: async (podName = 'gateway-a') => {
      const teller = gateway(podName);
      running.push(teller);
      await teller.start(new AbortController().signal);
      await clock.advance(1);
    },
    stop: () => Promise.all(running.splice(0).map((teller) => teller.stop())),
    box: (spec: object = { endpoint: ENDPOINT }, name = 'lab') =>
      api.seed(Boxes, {
        apiVersion: API_VERSION,
        kind: 'Box',
        metadata: { name },
        spec: BoxSpec.parse({ workspace: 'main', ...spec }),
        status: { running: 2 },
      }),
    change: (endpoint: object) => api.patch(Boxes, { name: 'lab' }, { spec: { endpoint } }, { type: 'merge' }),
    secret: (value = KEY) =>
      api.seed(Secrets, {
        apiVersion: 'v1',
        kind: 'Secret',
        metadata: { namespace: 'bw-lab', name: 'models', labels: { 'boxwright.dev/credential': 'true' } },
        data: { API_KEY: Buffer.from(value).toString('base64') },
      }),
    told: (name = 'lab') => api.peek(Boxes, name)?.status?.endpointProbe,
  };
}

type World = ReturnType<typeof setup>;

/** A Box with an endpoint that was probed once. */
async function probed(result: EndpointResult = 'ToolCallsWork'): Promise<World> {
  const world = setup();
  world.secret();
  world.box();
  world.answer(result);
  await world.start();
  expect(world.asked).toHaveLength(1);
  world.api.clearRecords();
  world.asked.length = 0;
  return world;
}

test('tells in the status of the Box what was found, never the key, and touches nothing else', async () => {
  const world = setup();
  const { metadata } = world.secret();
  world.box();
  await world.start();
  expect(world.asked).toEqual([
    {
      baseUrl: 'http://vllm:8000/v1',
      model: 'qwen3',
      keyIs: 'key API_KEY of Secret models in namespace bw-lab',
      secret: KEY,
    },
  ]);
  expect(world.api.peek(Boxes, 'lab')?.status).toEqual({
    running: 2,
    endpointProbe: {
      digest: expect.stringMatching(/^[0-9a-f]{16}$/),
      keyVersion: metadata.resourceVersion,
      probedAt: '2026-01-01T00:00:00.000Z',
      result: 'ToolCallsWork',
      message: 'fine',
    },
  });
  expect(world.api.writes.map(({ verb, resource }) => `${verb} ${resource}`)).toEqual(['patch boxes/status']);
  expect(JSON.stringify([world.api.writes, world.logged])).not.toContain(KEY);
  await world.stop();
});

test('a Box without an endpoint is left alone', async () => {
  const world = setup();
  world.box({ engine: 'scripted' });
  await world.start();
  await world.clock.advance(DAY);
  expect([world.asked, world.api.reads, world.api.writes]).toEqual([[], [], []]);
  await world.stop();
});

test('a good endpoint is probed once a day, and nothing is written between', async () => {
  const world = await probed();
  await world.clock.advance(DAY - 2 * MINUTE);
  expect(world.asked).toHaveLength(0);
  expect(world.api.writes).toEqual([]);
  await world.clock.advance(3 * MINUTE);
  expect(world.asked).toHaveLength(1);
  expect(world.api.writes).toHaveLength(1);
  expect(world.told()?.probedAt).toBe('2026-01-02T00:00:00.000Z');
  await world.stop();
});

test.each<[EndpointResult, number]>([
  ['EndpointUnavailable', 5 * MINUTE],
  ['EndpointRefused', 5 * MINUTE],
  ['ModelNotFound', 5 * MINUTE],
  ['ToolCallsRefused', HOUR],
  ['NoToolCall', HOUR],
])('%s is tried again, and written again only when it changes', async (result, interval) => {
  const world = await probed(result);
  await world.clock.advance(interval * 3 + MINUTE);
  expect(world.asked).toHaveLength(3);
  expect(world.api.writes).toEqual([]);
  world.answer('ToolCallsWork');
  await world.clock.advance(interval);
  expect(world.told()?.result).toBe('ToolCallsWork');
  expect(world.api.writes).toHaveLength(1);
  await world.stop();
});

test('a change of the endpoint is probed at once, one of its prices or of the status is not', async () => {
  const world = await probed();
  await world.change({ contextWindow: 4096, prices: { inputUsd: '1', outputUsd: '1' } });
  await world.api.patch(Boxes, { name: 'lab' }, { status: { running: 3 } }, { type: 'merge', subresource: 'status' });
  await world.clock.advance(1);
  expect(world.asked).toHaveLength(0);
  await world.change({ model: 'other' });
  await world.clock.advance(1);
  expect(world.asked.map(({ model }) => model)).toEqual(['other']);
  await world.stop();
});

test('another key is probed within a minute', async () => {
  const world = await probed();
  world.secret('another-key-9876');
  await world.clock.advance(RECHECK_MS);
  expect(world.asked.map(({ secret }) => secret)).toEqual(['another-key-9876']);
  await world.stop();
});

test('a key that is missing is said without a request, and the one that comes is used', async () => {
  const world = setup();
  world.box();
  await world.start();
  expect(world.told()).toMatchObject({
    result: 'KeyNotUsable',
    message: 'there is no key API_KEY of Secret models in namespace bw-lab: create it',
  });
  expect(world.asked).toHaveLength(0);
  world.secret();
  await world.clock.advance(RECHECK_MS);
  expect(world.told()?.result).toBe('ToolCallsWork');
  await world.stop();
});

test('of two gateway pods one probes; the other goes on when it is gone, without repeating what is known', async () => {
  const world = setup();
  world.secret();
  world.box();
  await world.start('gateway-b');
  await world.clock.advance(RECHECK_MS);
  expect(world.asked).toHaveLength(0);
  await world.start('gateway-a');
  expect(world.asked).toHaveLength(1);
  world.pods.shift();
  await world.clock.advance(HOUR);
  expect(world.asked).toHaveLength(1);
  await world.change({ model: 'other' });
  await world.clock.advance(1);
  expect(world.asked).toHaveLength(2);
  await world.stop();
});

test('a pod that starts does not repeat a good probe', async () => {
  const world = await probed();
  await world.stop();
  await world.clock.advance(HOUR);
  await world.start();
  await world.clock.advance(MINUTE);
  expect(world.asked).toHaveLength(0);
  expect(world.api.writes).toEqual([]);
  await world.stop();
});

test('what could not be written is written later, without another probe', async () => {
  const world = setup();
  world.secret();
  world.box();
  world.api.failNext({ verb: 'patch', resource: 'boxes/status', error: apiError(503, 'ServiceUnavailable') });
  await world.start();
  expect(world.told()).toBeUndefined();
  await world.clock.advance(MINUTE);
  expect(world.told()?.result).toBe('ToolCallsWork');
  expect(world.asked).toHaveLength(1);
  await world.stop();
});

test('a Box that was deleted and made again under its name is probed for itself', async () => {
  const world = await probed('NoToolCall');
  world.api.vanish(Boxes, 'lab');
  await world.clock.advance(1);
  world.box();
  await world.clock.advance(1);
  expect(world.asked).toHaveLength(1);
  expect(world.told()?.result).toBe('NoToolCall');
  await world.stop();
});

test('slow servers of one Workspace hold up no probe of another one, and all have their turn', async () => {
  const world = setup();
  const slow = 'http://slow:8000/v1';
  const held = Promise.withResolvers<void>();
  world.slow.set(slow, held.promise);
  for (let i = 0; i < 40; i++) world.box({ workspace: 'hostile', endpoint: { baseUrl: slow, model: 'm' } }, `a-${i}`);
  world.box({ endpoint: { ...ENDPOINT, secretRef: undefined } }, 'z');
  await world.start();
  await world.clock.advance(MINUTE);
  expect(world.told('z')?.result).toBe('ToolCallsWork');
  expect(world.asked.filter(({ baseUrl }) => baseUrl === slow)).toHaveLength(PROBES_OF_A_WORKSPACE);
  held.resolve();
  await world.clock.advance(MINUTE);
  expect(new Set(Array.from({ length: 40 }, (_, i) => world.told(`a-${i}`)?.result))).toEqual(
    new Set(['ToolCallsWork']),
  );
  await world.stop();
});

test('a Box that was made again in another Workspace is probed once at a time', async () => {
  const world = await probed('NoToolCall');
  world.api.vanish(Boxes, 'lab');
  world.box({ workspace: 'other', endpoint: ENDPOINT });
  await world.clock.advance(1);
  expect(world.asked).toHaveLength(1);
  await world.clock.advance(3 * HOUR + MINUTE);
  expect(world.asked).toHaveLength(4);
  await world.stop();
});
