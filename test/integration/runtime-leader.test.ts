/** Leader election with a real Lease: one leader at any time, whatever happens to it. */
import { createKubeApi } from '../../src/kube/client.js';
import { Leases } from '../../src/kube/core-types.js';
import { createLeaseStore } from '../../src/kube/lease-store.js';
import { leaderOnlyWrites } from '../../src/kube/leader-only-writes.js';
import { createTransport } from '../../src/kube/transport.js';
import { systemClock } from '../../src/runtime/clock.js';
import { NotLeadingError } from '../../src/runtime/errors.js';
import { LeaderElector } from '../../src/runtime/leader-elector.js';
import { eventually, startApiServer } from '../builders/api-server.js';
import type { TestApiServer } from '../builders/api-server.js';
import { FaultProxy } from '../builders/fault-proxy.js';
import { recordingLog } from '../builders/log.js';
import { ConfigMaps } from '../builders/scripted-transport.js';

let server: TestApiServer;
let namespace: string;
const cleanUps: (() => Promise<unknown>)[] = [];

beforeAll(async () => {
  server = await startApiServer();
});
afterAll(() => server.stop());
beforeEach(async () => {
  namespace = await server.createNamespace('runtime-leader');
});
afterEach(async () => {
  for (const cleanUp of cleanUps.splice(0).toReversed()) await cleanUp();
});

/** Generous, so that a busy machine costs no lease. */
const PATIENT = { leaseDurationMs: 12_000, renewDeadlineMs: 10_000, retryPeriodMs: 200 };
/** For the test that waits for an expiry. */
const HASTY = { leaseDurationMs: 8_000, renewDeadlineMs: 6_000, retryPeriodMs: 200 };

/** A candidate with its own way to the API server. */
async function candidate(identity: string, times = PATIENT) {
  const proxy = await FaultProxy.start(server.connection);
  const transport = createTransport(proxy.connection, { clock: systemClock });
  const api = createKubeApi(transport);
  const events: string[] = [];
  const elector = new LeaderElector({
    name: 'controller',
    identity,
    store: createLeaseStore(api, { namespace, name: 'controller' }),
    clock: systemClock,
    log: recordingLog().log,
    ...times,
    onStartedLeading: () => {
      events.push('started');
    },
    onStoppedLeading: (why) => {
      events.push(why);
    },
  });
  cleanUps.push(
    () => proxy.stop().catch(() => undefined),
    () => transport.close(),
    () => elector.stop(),
  );
  return { elector, events, proxy, api: leaderOnlyWrites(api, () => elector.isLeading()) };
}

function lease() {
  return server.api.get(Leases, { namespace, name: 'controller' });
}

test('the second takes over at once when the first stops, and the Lease says who leads', async () => {
  const a = await candidate('pod-a');
  const b = await candidate('pod-b');
  a.elector.start();
  await eventually(() => a.elector.isLeading(), 'a does not lead');
  b.elector.start();
  const held = await lease();

  await a.elector.stop();
  await eventually(() => b.elector.isLeading(), 'b does not lead');

  expect(held.spec).toMatchObject({ holderIdentity: 'pod-a', leaseDurationSeconds: 12, leaseTransitions: 0 });
  expect(held.spec?.renewTime).toMatch(/^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{6}Z$/);
  expect((await lease()).spec).toMatchObject({ holderIdentity: 'pod-b', leaseTransitions: 1 });
  expect(a.events).toEqual(['started', 'stopped']);
  expect(b.events).toEqual(['started']);
});

test('of ten that start together one leads', async () => {
  const all = await Promise.all(Array.from({ length: 10 }, (_, i) => candidate(`pod-${i}`)));
  for (const one of all) one.elector.start();
  await eventually(() => all.some((one) => one.elector.isLeading()), 'nobody leads');
  const requests = all.map((one) => one.proxy.requests.length);
  await eventually(
    () => all.every((one, i) => one.proxy.requests.length > (requests[i] as number) + 4),
    'not everybody tries on',
  );

  expect(all.filter((one) => one.elector.isLeading())).toHaveLength(1);
  expect(all.filter((one) => one.events.includes('started'))).toHaveLength(1);
});

test('a leader that is cut off stops leading before the other begins, and writes nothing more', async () => {
  const a = await candidate('pod-a', HASTY);
  const b = await candidate('pod-b', HASTY);
  a.elector.start();
  await eventually(() => a.elector.isLeading(), 'a does not lead');
  b.elector.start();
  const both: boolean[] = [];
  const watch = setInterval(() => both.push(a.elector.isLeading() && b.elector.isLeading()), 2);

  await a.proxy.stop();
  await eventually(() => b.elector.isLeading(), 'b does not take over');
  clearInterval(watch);
  const write = a.api.create(ConfigMaps, { apiVersion: 'v1', kind: 'ConfigMap', metadata: { name: 'x', namespace } });

  await expect(write).rejects.toBeInstanceOf(NotLeadingError);
  expect(both.length).toBeGreaterThan(10);
  expect(both).not.toContain(true);
  expect(a.events).toEqual(['started', 'lost']);
  expect((await lease()).spec).toMatchObject({ holderIdentity: 'pod-b', leaseTransitions: 1 });
});

test('an API server that answers 500 for a while costs nobody the lease', async () => {
  const a = await candidate('pod-a');
  a.elector.start();
  await eventually(() => a.elector.isLeading(), 'a does not lead');

  a.proxy.refuse(() => true, { status: 500, reason: 'InternalError', times: 2 });
  const from = a.proxy.requests.length;
  await eventually(() => a.proxy.requests.length >= from + 5, 'a does not try again');

  expect(a.elector.isLeading()).toBe(true);
  expect(a.events).toEqual(['started']);
});
