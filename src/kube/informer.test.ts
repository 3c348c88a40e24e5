import { FakeClock } from '../../test/builders/fake-clock.js';
import { recordingLog } from '../../test/builders/log.js';
import { ScriptedTransport } from '../../test/builders/scripted-transport.js';
import type { ConfigMap } from '../../test/builders/scripted-transport.js';
import { ConfigMaps, configMap } from '../../test/builders/scripted-transport.js';
import { KubeApiError, KubeConnectionError } from './errors.js';
import { createInformer } from './informer.js';
import type { CacheChange } from './types.js';

function start(options: { resyncMs?: number; project?: (object: ConfigMap) => string } = {}) {
  const clock = new FakeClock();
  const transport = new ScriptedTransport();
  const { log, messages, lines } = recordingLog();
  const counts: Record<string, number> = {};
  const count = (name: string) => (counts[name] = (counts[name] ?? 0) + 1);
  const informer = createInformer(
    transport,
    { type: ConfigMaps, project: options.project ?? ((object) => object.data?.['v'] ?? '') },
    {
      clock,
      log,
      random: () => 0,
      metrics: { relisted: () => count('relisted'), watchRestarted: (_resource, reason) => count(reason) },
      ...(options.resyncMs === undefined ? {} : { resyncMs: options.resyncMs }),
    },
  );
  const changes: CacheChange<string>[] = [];
  informer.onChange((change) => changes.push(change));
  informer.start();
  return { clock, transport, informer, changes, counts, messages, lines };
}

const gone = () => new KubeApiError({ status: 410, reason: 'Expired', message: 'too old resource version' });
const cut = () => new KubeConnectionError('watch configmaps: no connection to the API server', 'network');

test('a list of several pages fills the cache, then one watch begins at the version of the list', async () => {
  const { clock, transport, informer } = start();

  transport.list('100', [configMap('a', '1', 'one')], [configMap('b', '2', 'two')]);
  await clock.advance(0);
  await informer.synced;

  expect([...informer.values()]).toEqual(['one', 'two']);
  expect(transport.requests.map((one) => [one.verb, one.query])).toEqual([
    ['list', { limit: '500' }],
    ['list', { limit: '500', continue: 'page-2' }],
    ['watch', { watch: '1', allowWatchBookmarks: 'true', resourceVersion: '100', timeoutSeconds: '240' }],
  ]);
});

test('events and bookmarks move the position; the next watch begins at the last of them', async () => {
  const { clock, transport, informer, changes, counts } = start();
  transport.list('100');
  await clock.advance(0);

  transport.event('ADDED', configMap('a', '101', 'one'));
  transport.event('MODIFIED', configMap('a', '102', 'two'));
  transport.event('DELETED', configMap('a', '103', 'two'));
  transport.event('BOOKMARK', configMap('', '200'));
  await clock.advance(0);
  transport.endWatch();
  await clock.advance(0);

  expect(changes).toEqual([
    { key: 'ns/a', current: 'one' },
    { key: 'ns/a', previous: 'one', current: 'two' },
    { key: 'ns/a', previous: 'two' },
  ]);
  expect(transport.requests.at(-1)?.query?.['resourceVersion']).toBe('200');
  expect(counts).toEqual({ relisted: 1, ended: 1 });
  expect(informer.isHealthy()).toBe(true);
});

test('whoever waits for a version is released by the deletion that carries it', async () => {
  const { clock, transport, informer } = start();
  transport.list('100', [configMap('a', '90', 'one')]);
  await clock.advance(0);
  let released: boolean | undefined;
  void informer.waitForResourceVersion('110', new AbortController().signal).then((reached) => (released = reached));

  transport.event('ADDED', configMap('b', '109', 'x'));
  await clock.advance(0);
  const before = released;
  transport.event('DELETED', configMap('a', '110', 'one'));
  await clock.advance(0);

  expect(before).toBeUndefined();
  expect(released).toBe(true);
});

test('a cut watch resumes at the last event, after a backoff, without a list', async () => {
  const { clock, transport, counts } = start();
  transport.list('100');
  await clock.advance(0);
  transport.event('ADDED', configMap('a', '101', 'one'));
  await clock.advance(0);

  transport.endWatch(cut());
  await clock.advance(199);
  const early = transport.requests.length;
  await clock.advance(1);

  expect(early).toBe(2);
  expect(transport.requests.at(-1)).toMatchObject({ verb: 'watch', query: { resourceVersion: '101' } });
  expect(counts).toEqual({ relisted: 1, error: 1 });
});

test('the backoff grows while the API server is unavailable, is capped, and starts small after an event', async () => {
  const { clock, transport } = start();
  transport.list('100');
  await clock.advance(0);
  const pauses: number[] = [];
  for (let i = 0; i < 9; i++) {
    transport.failNextWatch(cut());
    if (i === 0) transport.endWatch(cut());
    const before = transport.requests.length;
    const from = clock.now();
    while (transport.requests.length === before) await clock.advance(100);
    pauses.push(clock.now() - from);
  }

  transport.event('ADDED', configMap('a', '101', 'one'));
  expect(pauses).toEqual([200, 400, 800, 1600, 3200, 5000, 5000, 5000, 5000]);
});

test.each([
  ['as the status of the watch', (transport: ScriptedTransport) => transport.endWatch(gone())],
  [
    'as an ERROR event',
    (transport: ScriptedTransport) =>
      transport.raw({ type: 'ERROR', object: { kind: 'Status', code: 410, reason: 'Expired', message: 'too old' } }),
  ],
])('410 %s leads to a new list, which deletes what is gone', async (_name, tell) => {
  const { clock, transport, changes, counts, informer } = start();
  transport.list('100', [configMap('a', '1', 'one'), configMap('b', '2', 'two')]);
  await clock.advance(0);
  changes.length = 0;

  tell(transport);
  transport.list('500', [configMap('b', '2', 'two'), configMap('c', '400', 'three')]);
  await clock.advance(1000);

  expect(changes).toEqual([
    { key: 'ns/a', previous: 'one' },
    { key: 'ns/c', current: 'three' },
  ]);
  expect(transport.requests.at(-1)?.query?.['resourceVersion']).toBe('500');
  expect(counts).toEqual({ relisted: 2, gone: 1 });
  expect(informer.size).toBe(2);
});

test('another ERROR event is no reason to list again', async () => {
  const { clock, transport, counts } = start();
  transport.list('100');
  await clock.advance(0);

  transport.raw({ type: 'ERROR', object: { kind: 'Status', code: 500, reason: 'InternalError', message: 'x' } });
  await clock.advance(1000);

  expect(counts).toEqual({ relisted: 1, error: 1 });
});

test('a silent watch is cut after 75 seconds and resumed; a bookmark in time keeps it', async () => {
  const { clock, transport, counts } = start();
  transport.list('100');
  await clock.advance(60_000);
  transport.event('BOOKMARK', configMap('', '150'));
  await clock.advance(74_999);
  const before = { ...counts };
  await clock.advance(1);

  expect(before).toEqual({ relisted: 1 });
  expect(counts).toEqual({ relisted: 1, silent: 1 });
  expect(transport.requests.at(-1)).toMatchObject({ verb: 'watch', query: { resourceVersion: '150' } });
  expect(transport.openWatches).toBe(1);
});

test('an informer is unhealthy before its first list and when nothing confirmed it for 150 seconds', async () => {
  const { clock, transport, informer } = start();
  const unread = informer.isHealthy();
  transport.list('100');
  await clock.advance(0);
  const read = informer.isHealthy();
  await clock.advance(149_999);
  const quiet = informer.isHealthy();
  await clock.advance(1);

  expect([unread, read, quiet, informer.isHealthy()]).toEqual([false, true, true, false]);
});

test('silence twice with a sign of life between is no reason to list again', async () => {
  const { clock, transport, counts } = start();
  transport.list('100');
  await clock.advance(75_000);
  transport.event('BOOKMARK', configMap('', '150'));
  await clock.advance(75_000);

  expect(counts).toEqual({ relisted: 1, silent: 2 });
  expect(transport.requests.at(-1)).toMatchObject({ verb: 'watch', query: { resourceVersion: '150' } });
});

test('silence twice in a row leads to a new list: the data may have moved back', async () => {
  const { clock, transport, counts, informer } = start();
  transport.list('100', [configMap('a', '90', 'one')]);
  await clock.advance(0);

  await clock.advance(150_000);
  transport.list('50', [configMap('b', '40', 'two')]);
  await clock.advance(0);

  expect(counts).toEqual({ relisted: 2, silent: 2 });
  expect([...informer.values()]).toEqual(['two']);
  expect(informer.isHealthy()).toBe(true);
});

test('a first list that fails is tried again; synced waits for it', async () => {
  const { clock, transport, informer, messages } = start();
  let synced = false;
  void informer.synced.then(() => (synced = true));
  transport.failNextList(new KubeApiError({ status: 500, reason: 'InternalError', message: 'x' }));
  await clock.advance(100);
  const early = synced;

  transport.list('100');
  await clock.advance(200);

  expect(early).toBe(false);
  expect(synced).toBe(true);
  expect(messages()).toEqual(['info list or watch failed, trying again']);
});

test('a list that expires between two pages begins again', async () => {
  const { clock, transport, informer, counts } = start();
  transport.list('100', [configMap('a', '1', 'one')], gone());
  await clock.advance(0);
  transport.list('300', [configMap('b', '2', 'two')]);
  await clock.advance(200);

  expect([...informer.values()]).toEqual(['two']);
  expect(counts).toEqual({ relisted: 1 });
});

test('a listener that throws is logged, and the next events still come', async () => {
  const { clock, transport, informer, messages } = start();
  informer.onChange(() => {
    throw new Error('listener');
  });
  transport.list('100');
  await clock.advance(0);

  transport.event('ADDED', configMap('a', '101', 'one'));
  transport.event('ADDED', configMap('b', '102', 'two'));
  await clock.advance(0);

  expect(informer.size).toBe(2);
  expect(messages()).toEqual(['error a listener of the cache failed', 'error a listener of the cache failed']);
});

test('an object that the projection cannot take counts as absent, and the others are cached', async () => {
  const { clock, transport, informer, messages } = start({
    project: (object) => {
      if (object.data?.['v'] === 'bad') throw new Error('cannot read this');
      return object.data?.['v'] ?? '';
    },
  });
  transport.list('100', [configMap('a', '1', 'bad'), configMap('b', '2', 'good'), configMap('c', '3', 'good')]);
  await clock.advance(0);
  transport.event('MODIFIED', configMap('b', '101', 'bad'));
  await clock.advance(0);

  expect([...informer.values()]).toEqual(['good']);
  expect(messages()).toEqual([
    'error object cannot be read and is left out',
    'error object cannot be read and is left out',
  ]);
});

test('the resync replays the cache without a request', async () => {
  const { clock, transport, changes } = start({ resyncMs: 10_000 });
  transport.list('100', [configMap('a', '1', 'one')]);
  await clock.advance(0);
  changes.length = 0;
  const requests = transport.requests.length;

  await clock.advance(18_000);

  expect(changes).toEqual([
    { key: 'ns/a', previous: 'one', current: 'one' },
    { key: 'ns/a', previous: 'one', current: 'one' },
  ]);
  expect(transport.requests).toHaveLength(requests);
});

test('a stopped informer closes its watch, leaves no timer and does not come back', async () => {
  const { clock, transport, informer } = start({ resyncMs: 10_000 });
  transport.list('100');
  await clock.advance(0);
  const waiting = informer.waitForResourceVersion('999', new AbortController().signal);

  await informer.stop();
  informer.start();
  const requests = transport.requests.length;
  await clock.advance(600_000);

  expect(await waiting).toBe(false);
  expect(transport.openWatches).toBe(0);
  expect(transport.requests).toHaveLength(requests);
  expect(clock.pending).toBe(0);
});
