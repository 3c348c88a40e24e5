import { FakeClock } from '../../../test/builders/fake-clock.js';
import { RecordingApi, apiError } from '../../../test/builders/recording-api.js';
import { API_VERSION } from '../../api/define-resource.js';
import { BoxSpec, Boxes } from '../../api/v1alpha1/box.js';
import type { Box } from '../../api/v1alpha1/box.js';
import { Secrets } from '../../kube/core-types.js';
import { createLogger } from '../../observability/logger.js';
import { RECHECK_MS, createProviderStatus } from './provider-status.js';
import { projectGatewayBox } from '../../projections/box.js';

const INSTALLATION = { namespace: 'boxwright', name: 'vendor-keys' };
const LABELS = { 'boxwright.dev/credential': 'true' };

function setup() {
  const clock = new FakeClock();
  const api = new RecordingApi({ clock });
  const logged: string[] = [];
  const log = createLogger('gateway', 'debug', { write: (line) => logged.push(line) });
  const teller = createProviderStatus({
    api,
    clock,
    log,
    boxes: api.informer({ type: Boxes, project: projectGatewayBox }),
    installationSecret: INSTALLATION,
  });
  return {
    api,
    clock,
    logged,
    start: async () => {
      await teller.start(new AbortController().signal);
      await clock.advance(1);
    },
    stop: () => teller.stop?.(),
    box: (spec: object = {}, more: Partial<Box> = {}, name = 'lab') =>
      api.seed(Boxes, {
        apiVersion: API_VERSION,
        kind: 'Box',
        metadata: { name },
        spec: BoxSpec.parse({ workspace: 'main', ...spec }),
        ...more,
      }),
    secret: (ref: { namespace: string; name: string }, data: Record<string, string>, labels: object = {}) =>
      api.seed(Secrets, {
        apiVersion: 'v1',
        kind: 'Secret',
        metadata: { ...ref, labels: { ...labels } },
        data: Object.fromEntries(
          Object.entries(data).map(([key, value]) => [key, Buffer.from(value).toString('base64')]),
        ),
      }),
    status: (name = 'lab') => api.peek(Boxes, name)?.status,
  };
}

const OWN = { namespace: 'bw-lab', name: 'models' };

test('tells the providers of the Box’s own Secret, never a key, and touches nothing else of the status', async () => {
  const world = setup();
  const { metadata } = world.box({ credentialsSecret: 'models', engine: 'scripted' }, { status: { running: 2 } });
  world.secret(OWN, { OPENAI_API_KEY: 'sk-value', XAI_API_KEY: ' ', MISTRAL_API_KEY: 'with space' }, LABELS);
  world.secret(INSTALLATION, { ANTHROPIC_API_KEY: 'sk-installation' });
  await world.start();
  expect(world.status()).toEqual({ running: 2, availableProviders: ['boxwright', 'openai'] });
  expect(world.api.writes).toEqual([
    {
      verb: 'patch',
      resource: 'boxes/status',
      key: 'lab',
      body: { metadata: { uid: metadata.uid }, status: { availableProviders: ['boxwright', 'openai'] } },
    },
  ]);
  expect(world.api.reads.map(({ resource, key }) => `${resource} ${key}`)).toEqual(['secrets bw-lab/models']);
  expect(JSON.stringify([world.api.writes, world.logged])).not.toMatch(/sk-|with space/);
  await world.stop();
});

test('the installation’s Secret serves Boxes without one, but no provider at an address of the Box; it is read once', async () => {
  const world = setup();
  world.secret(INSTALLATION, { ANTHROPIC_API_KEY: 'a', OPENAI_API_KEY: 'b' });
  world.box();
  world.box({ vendors: { openai: { baseUrl: 'https://proxy.example.com/v1' } } }, {}, 'proxied');
  await world.start();
  expect(world.status()?.availableProviders).toEqual(['anthropic', 'openai']);
  expect(world.status('proxied')?.availableProviders).toEqual(['anthropic']);
  expect(world.api.reads).toHaveLength(1);
  await world.stop();
});

test.each([
  ['wants no key', {}, undefined, ['boxwright']],
  ['wants a key that is there', { secretRef: { name: 'models' } }, LABELS, ['boxwright']],
  ['wants a key whose Secret has no label', { secretRef: { name: 'models' } }, {}, []],
  ['wants a key that is missing', { secretRef: { name: 'models' } }, undefined, []],
])('an endpoint that %s', async (_what, endpoint, labels, providers) => {
  const world = setup();
  world.box({ endpoint: { baseUrl: 'http://vllm:8000/v1', ...endpoint } });
  if (labels !== undefined) world.secret(OWN, { API_KEY: 'k' }, labels);
  await world.start();
  expect(world.status()?.availableProviders).toEqual(providers);
  await world.stop();
});

test('looks again every minute, and writes only what changed', async () => {
  const world = setup();
  world.box({ credentialsSecret: 'models' });
  await world.start();
  expect(world.status()?.availableProviders).toEqual([]);
  await world.clock.advance(RECHECK_MS * 2);
  expect(world.api.writes).toHaveLength(1);
  world.secret(OWN, { GOOGLE_API_KEY: 'k' }, LABELS);
  await world.clock.advance(RECHECK_MS);
  expect(world.status()?.availableProviders).toEqual(['google']);
  world.api.vanish(Secrets, 'bw-lab/models');
  await world.clock.advance(RECHECK_MS);
  expect(world.status()?.availableProviders).toEqual([]);
  expect(world.api.writes).toHaveLength(3);
  await world.stop();
});

test('a change of the spec is looked at at once; one of the status starts nothing', async () => {
  const world = setup();
  world.secret(OWN, { GOOGLE_API_KEY: 'k' }, LABELS);
  world.box();
  await world.start();
  await world.api.patch(Boxes, { name: 'lab' }, { spec: { credentialsSecret: 'models' } }, { type: 'merge' });
  await world.clock.advance(1);
  expect(world.status()?.availableProviders).toEqual(['google']);
  const ofAnother = { status: { availableProviders: ['xai'] } };
  await world.api.patch(Boxes, { name: 'lab' }, ofAnother, { type: 'merge', subresource: 'status' });
  world.api.clearRecords();
  await world.clock.advance(1);
  expect([...world.api.reads, ...world.api.writes]).toEqual([]);
  await world.stop();
});

test('what cannot be read is told to nobody, logged without values and tried again', async () => {
  const world = setup();
  world.box({ credentialsSecret: 'models' });
  world.secret(OWN, { OPENAI_API_KEY: 'sk-value' }, LABELS);
  world.api.failNext({ verb: 'get', resource: 'secrets', error: apiError(403, 'Forbidden') });
  await world.start();
  expect(world.status()?.availableProviders).toBeUndefined();
  expect(world.logged).toEqual([expect.stringContaining('keys of model providers of a Box could not be looked at')]);
  await world.clock.advance(RECHECK_MS);
  expect(world.status()?.availableProviders).toEqual(['openai']);
  expect(world.logged.join()).not.toContain('sk-value');
  await world.stop();
});

test('a Box that was deleted and made again under its name is not told of the old one', async () => {
  const world = setup();
  world.box();
  world.api.failNext({ verb: 'patch', resource: 'boxes/status', error: apiError(404, 'NotFound') });
  await world.start();
  world.api.vanish(Boxes, 'lab');
  world.box({ engine: 'scripted' });
  await world.clock.advance(1);
  expect(world.status()?.availableProviders).toEqual(['boxwright']);
  expect(world.logged).toEqual([]);
  await world.stop();
});
