/** The typed client against a real API server, with and without the fault proxy. */
import type { KubeObject, ResourceType } from '../../src/api/meta.js';
import { createKubeApi } from '../../src/kube/client.js';
import { Jobs, Namespaces, Secrets } from '../../src/kube/core-types.js';
import { isAlreadyExists, isConflict, isInvalid, isNotFound, KubeConnectionError } from '../../src/kube/errors.js';
import type { KubeApiError } from '../../src/kube/errors.js';
import type { RequestObservation } from '../../src/kube/metrics.js';
import { createFileToken } from '../../src/kube/token-file.js';
import { createTransport } from '../../src/kube/transport.js';
import type { KubeTransport, TransportOptions } from '../../src/kube/transport.js';
import type { KubeApi } from '../../src/kube/types.js';
import { systemClock } from '../../src/runtime/clock.js';
import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { eventually, startApiServer } from '../builders/api-server.js';
import type { TestApiServer } from '../builders/api-server.js';
import { FakeClock } from '../builders/fake-clock.js';
import { FaultProxy } from '../builders/fault-proxy.js';
import { ConfigMaps } from '../builders/scripted-transport.js';
import type { ConfigMap } from '../builders/scripted-transport.js';
import { writeStatus } from '../builders/write-status.js';

let server: TestApiServer;
let proxy: FaultProxy;
let namespace: string;
const transports: KubeTransport[] = [];

beforeAll(async () => {
  server = await startApiServer();
  proxy = await FaultProxy.start(server.connection);
});
afterAll(async () => {
  await proxy.stop();
  await server.stop();
});
beforeEach(async () => {
  namespace = await server.createNamespace('kube-client');
  proxy.clear();
});
afterEach(async () => {
  await Promise.all(transports.splice(0).map((transport) => transport.close()));
});

/** A client that reaches the API server through the proxy. */
function proxied(options: Partial<TransportOptions> = {}): KubeApi {
  const transport = createTransport(proxy.connection, { clock: systemClock, ...options });
  transports.push(transport);
  return createKubeApi(transport);
}

function map(name: string, data: Record<string, string> = {}): ConfigMap {
  return { apiVersion: 'v1', kind: 'ConfigMap', metadata: { name, namespace }, data };
}

async function errorOf(promise: Promise<unknown>): Promise<unknown> {
  return promise.then(
    () => 'no error',
    (error: unknown) => error,
  );
}

/** At most 16 at a time, as a busy process does. */
async function createMany(api: KubeApi, objects: ConfigMap[]): Promise<void> {
  const queue = [...objects];
  const worker = async () => {
    for (let next = queue.shift(); next !== undefined; next = queue.shift()) await api.create(ConfigMaps, next);
  };
  await Promise.all(Array.from({ length: 16 }, worker));
}

test('an object is created, read, replaced, patched and deleted as plain JSON', async () => {
  const { api } = server;
  const ref = { namespace, name: 'a' };

  const created = await api.create(ConfigMaps, map('a', { k: '1' }));
  const replaced = await api.replace(ConfigMaps, { ...created, data: { k: '2' } });
  await api.patch(ConfigMaps, ref, { data: { merged: 'm' } }, { type: 'merge' });
  await api.patch(ConfigMaps, ref, [{ op: 'add', path: '/data/json', value: 'j' }], { type: 'json' });
  const applied = map('a', { applied: 'x' });
  await api.patch(ConfigMaps, ref, applied, { type: 'apply', fieldManager: 'boxwright-test' });
  const read = await api.get(ConfigMaps, ref);
  await api.delete(ConfigMaps, ref, { uid: read.metadata.uid as string });

  expect(created.metadata.creationTimestamp).toMatch(/^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ$/);
  expect(replaced.metadata.resourceVersion).not.toBe(created.metadata.resourceVersion);
  expect(read).toMatchObject({ apiVersion: 'v1', kind: 'ConfigMap' });
  expect(read.data).toEqual({ k: '2', merged: 'm', json: 'j', applied: 'x' });
  expect(isNotFound(await errorOf(api.get(ConfigMaps, ref)))).toBe(true);
});

test('a status write changes the status alone, and a replace all but the status', async () => {
  const { api } = server;
  const template = { spec: { restartPolicy: 'Never', containers: [{ name: 'c', image: 'none' }] } };
  const job = await api.create(Jobs, {
    apiVersion: 'batch/v1',
    kind: 'Job',
    metadata: { name: 'j', namespace },
    spec: { template, suspend: true },
  });

  const counted = await writeStatus(api, Jobs, {
    ...job,
    spec: { ...job.spec, suspend: false },
    status: { active: 1 },
  });
  const resumed = await api.replace(Jobs, { ...counted, spec: { ...counted.spec, suspend: false }, status: {} });

  expect(counted).toMatchObject({ spec: { suspend: true }, status: { active: 1 } });
  expect(resumed).toMatchObject({ spec: { suspend: false }, status: { active: 1 } });
});

test.each<[string, (api: KubeApi, object: ConfigMap) => Promise<unknown>, (error: unknown) => boolean]>([
  ['a name that is taken', (api) => api.create(ConfigMaps, map('a')), isAlreadyExists],
  [
    'an old resourceVersion in a replace',
    async (api, object) => {
      await api.replace(ConfigMaps, { ...object, data: { k: 'newer' } });
      return api.replace(ConfigMaps, { ...object, data: { k: 'older' } });
    },
    isConflict,
  ],
  [
    'a UID of another object in a delete',
    (api) => api.delete(ConfigMaps, { namespace, name: 'a' }, { uid: 'another' }),
    isConflict,
  ],
  [
    'an old resourceVersion in a delete',
    (api) => api.delete(ConfigMaps, { namespace, name: 'a' }, { resourceVersion: '1' }),
    isConflict,
  ],
  ['an object that is not there', (api) => api.get(ConfigMaps, { namespace, name: 'b' }), isNotFound],
  ['a name that is no DNS name', (api) => api.create(ConfigMaps, map('No_Name')), isInvalid],
])('%s gives the error that says so, and changes nothing', async (_name, act, matches) => {
  const object = await server.api.create(ConfigMaps, map('a', { k: 'first' }));

  const error = await errorOf(act(server.api, object));

  expect(matches(error)).toBe(true);
  const { items } = await server.api.list(ConfigMaps, { namespace });
  expect(items.map((item) => item.data?.['k'])).toHaveLength(1);
  expect(items[0]?.data?.['k']).not.toBe('older');
});

test('an invalid value is refused without its text in the message', async () => {
  const error = (await errorOf(
    server.api.create(Secrets, {
      apiVersion: 'v1',
      kind: 'Secret',
      metadata: { name: 's', namespace, labels: { key: 'very secret value!' } },
    }),
  )) as KubeApiError;

  expect(error.status).toBe(422);
  expect(error.message).toContain('metadata.labels');
  expect(error.message).not.toContain('very secret');
});

test('a list comes in pages of 500', async () => {
  const api = proxied();
  await createMany(
    server.api,
    Array.from({ length: 1201 }, (_, i) => map(`m-${i}`)),
  );

  const { items, resourceVersion } = await api.list(ConfigMaps, { namespace });

  expect(items).toHaveLength(1201);
  expect(new Set(items.map((item) => item.metadata.name)).size).toBe(1201);
  expect(items[0]).toMatchObject({ apiVersion: 'v1', kind: 'ConfigMap' });
  expect(resourceVersion).toMatch(/^\d+$/);
  expect(proxy.requests.map((one) => one.url.searchParams.get('limit'))).toEqual(['500', '500', '500']);
  expect(proxy.requests.every((one) => !one.url.searchParams.has('resourceVersion'))).toBe(true);
});

test('a read of metadata alone leaves the data with the server, lists page by page', async () => {
  await createMany(
    server.api,
    Array.from({ length: 5 }, (_, i) => map(`m-${i}`, { text: 'x'.repeat(1000) })),
  );

  const { items } = await proxied().list(ConfigMaps, { namespace, metadataOnly: true, pageSize: 2 });

  expect(items.map(({ metadata }) => metadata.name)).toEqual(['m-0', 'm-1', 'm-2', 'm-3', 'm-4']);
  expect(items.every(({ metadata }) => metadata.uid !== undefined && metadata.namespace === namespace)).toBe(true);
  expect(items.filter((item) => item.data !== undefined)).toEqual([]);
  expect(proxy.count('list')).toBe(3);

  const one = await proxied().get(ConfigMaps, { namespace, name: 'm-0' }, { metadataOnly: true });
  expect(one).toMatchObject({ kind: 'PartialObjectMetadata', metadata: { uid: items[0]?.metadata.uid } });
  expect(one.data).toBeUndefined();
});

test('a continue token that is too old starts the list again', async () => {
  const api = proxied();
  await createMany(
    server.api,
    Array.from({ length: 501 }, (_, i) => map(`m-${i}`)),
  );
  proxy.refuse((request) => request.url.searchParams.has('continue'), { status: 410, reason: 'Expired' });

  const { items } = await api.list(ConfigMaps, { namespace });

  expect(items).toHaveLength(501);
  expect(proxy.count('list')).toBe(4);
});

test('lists are selected by label', async () => {
  await server.api.create(ConfigMaps, { ...map('a'), metadata: { name: 'a', namespace, labels: { app: 'x' } } });
  await server.api.create(ConfigMaps, map('b'));

  const { items } = await server.api.list(ConfigMaps, { namespace, labelSelector: 'app=x' });

  expect(items.map((item) => item.metadata.name)).toEqual(['a']);
});

test('429 is obeyed: the call waits as long as Retry-After says, then succeeds', async () => {
  const observations: RequestObservation[] = [];
  const api = proxied({ metrics: { requested: (one) => observations.push(one) } });
  proxy.refuse((request) => request.verb === 'create', {
    status: 429,
    reason: 'TooManyRequests',
    retryAfterSeconds: 1,
    times: 2,
  });

  const started = performance.now();
  await api.create(ConfigMaps, map('a'));

  expect(performance.now() - started).toBeGreaterThanOrEqual(1_990);
  expect(observations.map(({ verb, resource, status }) => `${verb} ${resource} ${status}`)).toEqual([
    'create configmaps 429',
    'create configmaps 429',
    'create configmaps 201',
  ]);
});

test.each([
  ['503 with Retry-After is tried again', { status: 503, retryAfterSeconds: 0 }, 2],
  ['503 without it is not', { status: 503 }, 1],
  ['500 is not', { status: 500, retryAfterSeconds: 0 }, 1],
])('%s', async (_name, refusal, expected) => {
  const api = proxied();
  proxy.refuse((request) => request.verb === 'get', { reason: 'Unavailable', ...refusal });

  await errorOf(api.get(ConfigMaps, { namespace, name: 'a' }));

  expect(proxy.count('get')).toBe(expected);
});

test('a server that refuses for ever is given up, with its last answer', async () => {
  const clock = new FakeClock();
  const api = proxied({ timeoutMs: 2_500, clock });
  proxy.refuse((request) => request.verb === 'delete', {
    status: 429,
    reason: 'TooManyRequests',
    retryAfterSeconds: 1,
    times: 100,
  });

  const given = errorOf(api.delete(ConfigMaps, { namespace, name: 'a' }));
  for (const tries of [1, 2]) {
    // Its time limit and its wait for the next try.
    await eventually(() => proxy.count('delete') === tries && clock.pending === 2, 'the call does not wait');
    await clock.advance(1_000);
  }
  const error = await given;

  expect(error).toMatchObject({ status: 429, reason: 'TooManyRequests', retryAfterSeconds: 1 });
  expect(proxy.count('delete')).toBe(3);
});

test('1,000 calls one after another keep their connection; 100 at once open no more than the pool has', async () => {
  const api = proxied({ connections: 8 });
  await server.api.create(ConfigMaps, map('a'));

  for (let i = 0; i < 1000; i++) await api.get(ConfigMaps, { namespace, name: 'a' });
  const sequential = proxy.connections;
  await Promise.all(Array.from({ length: 100 }, () => api.get(ConfigMaps, { namespace, name: 'a' })));

  expect(sequential).toBeLessThanOrEqual(2); // the pool may open a second while the first is being read out
  expect(proxy.connections).toBeLessThanOrEqual(8);
  expect(proxy.count('get', 'configmaps')).toBe(1100);
});

test('a call that gets no answer ends at its bound; the caller can end it earlier', async () => {
  const hanging = await FaultProxy.start({ server: `http://127.0.0.1:${await silentPort()}` });
  const transport = createTransport(hanging.connection, { clock: systemClock, timeoutMs: 300 });
  transports.push(transport);
  const api = createKubeApi(transport);

  const timedOut = await errorOf(api.get(Namespaces, { name: 'default' }));
  const aborted = await errorOf(api.get(Namespaces, { name: 'default' }, { signal: AbortSignal.timeout(20) }));
  await hanging.stop();

  expect(timedOut).toBeInstanceOf(KubeConnectionError);
  expect(timedOut).toMatchObject({ failure: 'timeout', message: 'get namespaces: no answer in time' });
  expect(aborted).toMatchObject({ failure: 'aborted', message: 'get namespaces: given up by the caller' });
});

test('a server that is not there is a connection error with its cause', async () => {
  const transport = createTransport({ server: 'http://127.0.0.1:1' }, { clock: systemClock });
  transports.push(transport);

  const error = await errorOf(createKubeApi(transport).get(Namespaces, { name: 'default' }));

  expect(error).toMatchObject({ failure: 'network', cause: { code: 'ECONNREFUSED' } });
});

test('a connection that is accepted and never answered is given up after 4 seconds, and the next one is tried', async () => {
  const port = await silentPort();
  const transport = createTransport({ server: `https://127.0.0.1:${port}` }, { clock: systemClock, connections: 1 });
  transports.push(transport);
  const api = createKubeApi(transport);

  for (const _attempt of [1, 2]) {
    const error = await errorOf(api.get(Namespaces, { name: 'default' }));
    expect(error).toMatchObject({ failure: 'network', cause: { code: 'UND_ERR_CONNECT_TIMEOUT' } });
    expect(String((error as Error).cause)).toContain('timeout: 4000ms');
  }
});

test('a certificate of another authority is refused', async () => {
  const { ca: _ca, ...untrusting } = server.connection;
  const transport = createTransport(untrusting, { clock: systemClock });
  transports.push(transport);

  const error = await errorOf(createKubeApi(transport).get(Namespaces, { name: 'default' }));

  expect(error).toMatchObject({ failure: 'network' });
});

test('a renewed token file is used within 60 seconds, without a new process', async () => {
  const folder = await mkdtemp(join(tmpdir(), 'boxwright-token-'));
  const path = join(folder, 'token');
  const clock = new FakeClock();
  await writeFile(path, await mintToken('first'));
  const { server: url } = proxy.connection;
  const transport = createTransport({ server: url, token: createFileToken(path, clock) }, { clock: systemClock });
  transports.push(transport);
  const api = createKubeApi(transport);
  const whoAmI = async () => {
    // Without rights the server says no and names us.
    const error = (await errorOf(api.get(ConfigMaps, { namespace, name: 'a' }))) as KubeApiError;
    return /User "([^"]+)"/.exec(error.message)?.[1];
  };

  const before = await whoAmI();
  await writeFile(path, await mintToken('second'));
  const still = await whoAmI();
  await clock.advance(60_000);
  const after = await whoAmI();
  await rm(folder, { recursive: true });

  const account = `system:serviceaccount:${namespace}`;
  expect([before, still, after]).toEqual([`${account}:first`, `${account}:first`, `${account}:second`]);
});

interface TokenRequest extends KubeObject {
  spec: { audiences: string[] };
  status?: { token: string };
}

async function mintToken(account: string): Promise<string> {
  await server.api.create(
    { group: '', version: 'v1', kind: 'ServiceAccount', plural: 'serviceaccounts', namespaced: true },
    { apiVersion: 'v1', kind: 'ServiceAccount', metadata: { name: account, namespace } },
  );
  const tokens: ResourceType<TokenRequest> = {
    group: '',
    version: 'v1',
    kind: 'TokenRequest',
    plural: `serviceaccounts/${account}/token`,
    namespaced: true,
  };
  const { status } = await server.api.create(tokens, {
    apiVersion: 'authentication.k8s.io/v1',
    kind: 'TokenRequest',
    metadata: { name: account, namespace },
    spec: { audiences: [] },
  });
  return status?.token ?? '';
}

/** A port where connections are taken and never answered. */
async function silentPort(): Promise<number> {
  const { createServer } = await import('node:net');
  const silent = createServer((socket) => socket.on('error', () => undefined).resume());
  silent.unref();
  await new Promise<void>((resolve) => silent.listen(0, '127.0.0.1', resolve));
  const address = silent.address();
  return typeof address === 'object' && address !== null ? address.port : 0;
}
