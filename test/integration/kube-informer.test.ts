/** List and watch against a real API server, through the proxy that breaks them. */
import { API_VERSION } from '../../src/api/define-resource.js';
import { Workspaces } from '../../src/api/v1alpha1/workspace.js';
import { createKubeApi } from '../../src/kube/client.js';
import { createInformer } from '../../src/kube/informer.js';
import { createTransport } from '../../src/kube/transport.js';
import type { KubeTransport } from '../../src/kube/transport.js';
import type { Informer } from '../../src/kube/types.js';
import { systemClock } from '../../src/runtime/clock.js';
import type { Clock } from '../../src/runtime/clock.js';
import { inParallel } from '../../src/runtime/in-parallel.js';
import { eventually, startApiServer } from '../builders/api-server.js';
import type { TestApiServer } from '../builders/api-server.js';
import { FaultProxy } from '../builders/fault-proxy.js';
import { recordingLog } from '../builders/log.js';
import { ConfigMaps } from '../builders/scripted-transport.js';
import type { ConfigMap } from '../builders/scripted-transport.js';

let server: TestApiServer;
let proxy: FaultProxy;
let transport: KubeTransport;
let namespace: string;
let informers: Informer<string>[] = [];

beforeAll(async () => {
  server = await startApiServer();
});
afterAll(() => server.stop());
beforeEach(async () => {
  proxy = await FaultProxy.start(server.connection);
  transport = createTransport(proxy.connection, { clock: systemClock });
  namespace = await server.createNamespace('kube-informer');
});
afterEach(async () => {
  await Promise.all(informers.splice(0).map((informer) => informer.stop()));
  await transport.close();
  await proxy.stop();
});

function map(name: string, value: string): ConfigMap {
  return {
    apiVersion: 'v1',
    kind: 'ConfigMap',
    metadata: { name, namespace, labels: { v: value } },
    data: { v: value },
  };
}

/** For what comes in milliseconds; only a hang meets it. */
const patience = () => AbortSignal.timeout(60_000);

/** The watchdog's 75 seconds pass in 750 ms; all else stays real. */
const hurriedClock: Clock = {
  now: () => systemClock.now(),
  monotonic: () => systemClock.monotonic() * 100,
  after: (ms, callback) => systemClock.after(ms / 100, callback),
};

async function start(options: { clock?: Clock; labelSelector?: string } = {}) {
  const restarts: string[] = [];
  const informer = createInformer(
    transport,
    {
      type: ConfigMaps,
      namespace,
      project: (object) => object.data?.['v'] ?? '',
      indexes: { byValue: (value) => [value] },
      ...(options.labelSelector === undefined ? {} : { labelSelector: options.labelSelector }),
    },
    {
      clock: options.clock ?? systemClock,
      log: recordingLog().log,
      metrics: { relisted: () => undefined, watchRestarted: (_resource, reason) => restarts.push(reason) },
    },
  );
  informers.push(informer);
  informer.start();
  await informer.synced;
  await eventually(() => proxy.openWatches === 1, 'the watch is not open');
  return { informer, restarts };
}

/** Writes an object and waits until the informer has seen it, as the write barrier does. */
async function writeAndSee(informer: Informer<string>, name: string, value: string): Promise<void> {
  const { metadata } = await server.api.create(ConfigMaps, map(name, value));
  const seen = await informer.waitForResourceVersion(metadata.resourceVersion as string, patience());
  expect(seen).toBe(true);
  expect(informer.get(`${namespace}/${name}`)).toBe(value);
}

test('creations, changes and deletions arrive; the deletion moves the position to its own version', async () => {
  const { informer } = await start();

  await writeAndSee(informer, 'a', 'one');
  const created = await server.api.get(ConfigMaps, { namespace, name: 'a' });
  const changed = await server.api.replace(ConfigMaps, { ...created, data: { v: 'two' } });
  await informer.waitForResourceVersion(changed.metadata.resourceVersion as string, patience());
  const afterChange = informer.get(`${namespace}/a`);
  const tombstone = BigInt(changed.metadata.resourceVersion as string) + 1n;
  await server.api.delete(ConfigMaps, { namespace, name: 'a' });
  const sawDeletion = await informer.waitForResourceVersion(String(tombstone), patience());

  expect(afterChange).toBe('two');
  expect(sawDeletion).toBe(true);
  expect(informer.size).toBe(0);
  expect(informer.byIndex('byValue', 'two')).toEqual([]);
  expect(proxy.count('list')).toBe(1);
  expect(proxy.count('watch')).toBe(1);
});

test('an object that leaves the selector leaves the cache', async () => {
  const { informer } = await start({ labelSelector: 'v=one' });
  await writeAndSee(informer, 'a', 'one');
  const object = await server.api.get(ConfigMaps, { namespace, name: 'a' });

  const moved = await server.api.replace(ConfigMaps, {
    ...object,
    metadata: { ...object.metadata, labels: { v: 'two' } },
  });

  expect(await informer.waitForResourceVersion(moved.metadata.resourceVersion as string, patience())).toBe(true);
  expect(informer.size).toBe(0);
});

test('a cut watch resumes where it was: nothing is lost and nothing listed again', async () => {
  const { informer, restarts } = await start();
  await writeAndSee(informer, 'before', 'one');

  expect(proxy.cutWatches()).toBe(1);
  await server.api.create(ConfigMaps, map('while-cut', 'two'));
  await server.api.delete(ConfigMaps, { namespace, name: 'before' });
  await writeAndSee(informer, 'after', 'three');

  expect([...informer.values()].sort()).toEqual(['three', 'two']);
  expect(restarts).toEqual(['error']);
  expect(proxy.count('list')).toBe(1);
});

test('a stalled watch is found by its silence and replaced; what happened meanwhile arrives', async () => {
  const { informer, restarts } = await start({ clock: hurriedClock });
  await writeAndSee(informer, 'before', 'one');

  proxy.stallWatches();
  proxy.serveNewWatches();
  await writeAndSee(informer, 'while-stalled', 'two');

  expect(restarts[0]).toBe('silent');
  expect(proxy.count('list')).toBe(1);
});

test('an informer whose watches all stall turns unhealthy, and healthy again when they do not', async () => {
  const { informer } = await start({ clock: hurriedClock });
  const fresh = informer.isHealthy();

  proxy.stallWatches();
  proxy.refuse((request) => request.verb === 'list', { status: 500, reason: 'InternalError', times: 1_000_000 });
  await eventually(() => !informer.isHealthy(), 'the informer did not notice');
  proxy.serveNewWatches();
  proxy.forgive();
  await eventually(() => informer.isHealthy(), 'the informer did not recover');

  expect(fresh).toBe(true);
});

test('a position that a real API server has forgotten leads to a new list', async () => {
  // Its cache of a kind begins when the kind is defined, so version 1 is too old for ours.
  await server.applyCrds();
  const labels = { test: namespace };
  const workspace = (name: string) =>
    server.api.create(Workspaces, {
      apiVersion: API_VERSION,
      kind: 'Workspace',
      metadata: { name, labels },
      spec: { slots: 1, expertSandbox: false },
    });
  const restarts: string[] = [];
  const informer = createInformer(
    transport,
    { type: Workspaces, labelSelector: `test=${namespace}`, project: (object) => object.metadata.name },
    {
      clock: systemClock,
      log: recordingLog().log,
      metrics: { relisted: () => undefined, watchRestarted: (_resource, reason) => restarts.push(reason) },
    },
  );
  informers.push(informer);
  informer.start();
  await informer.synced;
  await eventually(() => proxy.openWatches === 1, 'the watch is not open');

  proxy.clear();
  proxy.ageNextWatch();
  proxy.cutWatches();
  const { metadata } = await workspace(namespace);
  const seen = await informer.waitForResourceVersion(metadata.resourceVersion as string, patience());

  expect(seen).toBe(true);
  expect([...informer.values()]).toEqual([namespace]);
  expect(restarts).toEqual(['error', 'gone']);
  expect(proxy.count('list')).toBe(1);
});

test.each([
  [
    'as the status of the watch',
    () => {
      proxy.refuse((request) => request.verb === 'watch', { status: 410, reason: 'Expired' });
      proxy.cutWatches();
    },
  ],
  [
    'as an ERROR event',
    () => proxy.injectWatchEvent({ type: 'ERROR', object: { kind: 'Status', code: 410, reason: 'Expired' } }),
  ],
])('410 %s: the list is read again, and deletions that no event told are found', async (_name, expire) => {
  const { informer, restarts } = await start();
  await writeAndSee(informer, 'goes', 'one');
  proxy.stallWatches();
  await server.api.delete(ConfigMaps, { namespace, name: 'goes' });
  proxy.serveNewWatches();

  expire();
  await writeAndSee(informer, 'comes', 'two');

  expect([...informer.values()]).toEqual(['two']);
  expect(restarts).toContain('gone');
  expect(proxy.count('list')).toBe(2);
});

test('10,000 objects: synced by 20 pages, indexed, and never listed again while they change', async () => {
  const names = Array.from({ length: 10_000 }, (_, i) => `m-${i}`);
  const maps = names.map((name, i) => map(name, `group-${i % 100}`));
  await inParallel(maps, (one) => server.api.create(ConfigMaps, one), 16);
  const { informer, restarts } = await start();

  expect(informer.size).toBe(10_000);
  expect(informer.byIndex('byValue', 'group-7')).toHaveLength(100);
  expect(proxy.count('list')).toBe(20);

  // Steady state: many changes, no request.
  proxy.clear();
  let last = '0';
  const change = async (name: string) => {
    const patched = await server.api.patch(
      ConfigMaps,
      { namespace, name },
      { data: { v: 'changed' } },
      { type: 'merge' },
    );
    if (BigInt(patched.metadata.resourceVersion as string) > BigInt(last))
      last = patched.metadata.resourceVersion as string;
  };
  await inParallel(names.slice(0, 1000), change, 16);
  expect(await informer.waitForResourceVersion(last, patience())).toBe(true);

  expect(informer.byIndex('byValue', 'changed')).toHaveLength(1000);
  expect(proxy.requests).toEqual([]);
  expect(restarts).toEqual([]);
}, 600_000);

test('four informers share one transport: one watch each, calls not hindered', async () => {
  const api = createKubeApi(transport);
  const started = await Promise.all([1, 2, 3, 4].map(() => startUncounted()));
  await eventually(() => proxy.openWatches === 4, 'not all watches are open');

  const { metadata } = await api.create(ConfigMaps, map('a', 'one'));
  const seen = await Promise.all(
    started.map((informer) => informer.waitForResourceVersion(metadata.resourceVersion as string, patience())),
  );

  expect(seen).toEqual([true, true, true, true]);
  expect(proxy.count('watch')).toBe(4);
});

async function startUncounted(): Promise<Informer<string>> {
  const informer = createInformer(
    transport,
    { type: ConfigMaps, namespace, project: (object) => object.metadata.name },
    { clock: systemClock, log: recordingLog().log },
  );
  informers.push(informer);
  informer.start();
  await informer.synced;
  return informer;
}
