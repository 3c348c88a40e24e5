/** Informer, queue, steps and status write together, on a real API server. */
import { objectKey } from '../../src/api/meta.js';
import { createKubeApi } from '../../src/kube/client.js';
import { Jobs } from '../../src/kube/core-types.js';
import type { Job } from '../../src/kube/core-types.js';
import { createInformer } from '../../src/kube/informer.js';
import { createTransport } from '../../src/kube/transport.js';
import type { KubeTransport } from '../../src/kube/transport.js';
import type { Informer } from '../../src/kube/types.js';
import { systemClock } from '../../src/runtime/clock.js';
import { Controller } from '../../src/runtime/controller.js';
import { CONTINUE, DONE, runSteps } from '../../src/runtime/steps.js';
import type { Step } from '../../src/runtime/steps.js';
import { eventually, startApiServer } from '../builders/api-server.js';
import type { TestApiServer } from '../builders/api-server.js';
import { FaultProxy } from '../builders/fault-proxy.js';
import { recordingLog } from '../builders/log.js';
import { writeStatus } from '../builders/write-status.js';

let server: TestApiServer;
let proxy: FaultProxy;
let transport: KubeTransport;
let namespace: string;
let informer: Informer<Job>;
let controller: Controller;
const log = recordingLog();
const outcomes: string[] = [];

beforeAll(async () => {
  server = await startApiServer();
});
afterAll(() => server.stop());
beforeEach(async () => {
  namespace = await server.createNamespace('runtime-controller');
  proxy = await FaultProxy.start(server.connection);
  transport = createTransport(proxy.connection, { clock: systemClock });
  log.lines.length = 0;
  outcomes.length = 0;
  await startController();
  proxy.clear();
});
afterEach(async () => {
  await controller.stop();
  await informer.stop();
  await transport.close();
  await proxy.stop();
});

/** The test server has no Job controller, so this one counts: status.active becomes the wanted parallelism. */
async function startController(): Promise<void> {
  const api = createKubeApi(transport);
  informer = createInformer(
    transport,
    { type: Jobs, namespace, project: (job) => job },
    { clock: systemClock, log: log.log },
  );
  const steps: Step<Job, undefined>[] = [
    { name: 'skip deleted', run: (job) => (job.metadata.deletionTimestamp === undefined ? CONTINUE : DONE) },
    {
      name: 'count',
      run: (job) => {
        job.status = { ...job.status, active: wanted(job) };
        return CONTINUE;
      },
    },
  ];
  controller = new Controller({
    name: 'jobs',
    workers: 4,
    reconcile: async (key, signal) => {
      const object = informer.get(key);
      if (object === undefined) return undefined;
      return runSteps({ object, inputs: undefined, steps, writeStatus: (job) => writeStatus(api, Jobs, job), signal });
    },
    clock: systemClock,
    log: log.log,
    metrics: {
      reconciled: (_name, outcome) => outcomes.push(outcome),
      queueDepth: () => undefined,
      activeWorkers: () => undefined,
    },
  });
  informer.onChange((change) => controller.enqueue(change.key));
  informer.start();
  await informer.synced;
  await eventually(() => proxy.openWatches === 1, 'the watch is not open');
  controller.start();
}

function wanted(job: Job): number {
  return job.spec['parallelism'] as number;
}

function newJob(name: string): Job {
  const template = { spec: { restartPolicy: 'Never', containers: [{ name: 'c', image: 'none' }] } };
  return { apiVersion: 'batch/v1', kind: 'Job', metadata: { name, namespace }, spec: { template, parallelism: 1 } };
}

async function untilCounted(name: string, count: number): Promise<void> {
  const key = objectKey({ name, namespace });
  await eventually(() => informer.get(key)?.status?.active === count, `${name} is not counted`);
}

test('a new object costs one status write; our own write coming back costs none', async () => {
  await server.api.create(Jobs, newJob('a'));
  await untilCounted('a', 1);
  await eventually(() => outcomes.length >= 2, 'the write did not come back');

  expect(proxy.requests.map((one) => `${one.verb} ${one.resource}`)).toEqual(['patch jobs/status']);
  expect(outcomes).toEqual(['success', 'success']);
});

test('a write that lost against a newer version is repeated on the newer one, without an error in the log', async () => {
  proxy.refuse((request) => request.verb === 'patch', { status: 409, reason: 'Conflict' });

  await server.api.create(Jobs, newJob('a'));
  await untilCounted('a', 1);

  expect(outcomes).toContain('conflict');
  expect(log.messages()).toEqual([]);
});

test('a write whose answer is lost is not done twice', async () => {
  proxy.refuse((request) => request.verb === 'patch', { status: 500, reason: 'InternalError', afterServer: true });

  await server.api.create(Jobs, newJob('a'));
  await untilCounted('a', 1);
  await eventually(() => outcomes.filter((outcome) => outcome === 'success').length >= 2, 'no quiet reconcile');

  expect(proxy.count('patch', 'jobs/status')).toBe(1);
  expect(log.messages()).toEqual(['error reconcile failed']);
});

test('changes made while the watch is cut are worked on after it', async () => {
  const job = await server.api.create(Jobs, newJob('a'));
  await untilCounted('a', 1);

  proxy.cutWatches();
  await server.api.patch(Jobs, { namespace, name: job.metadata.name }, { spec: { parallelism: 3 } }, { type: 'merge' });
  await untilCounted('a', 3);

  expect(proxy.count('list')).toBe(0);
});

test('a hundred objects at once: one write each', async () => {
  const names = Array.from({ length: 100 }, (_, i) => `j-${i}`);
  await Promise.all(names.map((name) => server.api.create(Jobs, newJob(name))));
  for (const name of names) await untilCounted(name, 1);

  expect(proxy.count('patch', 'jobs/status')).toBe(100);
});
