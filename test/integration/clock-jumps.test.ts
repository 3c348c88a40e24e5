/**
 * The controller process, twice, on a real API server, while the clocks of their nodes jump by hours: a suspended machine, a
 * wrong time server. Runs, schedules, retention and the Lease are at work; the time that counts is the API server's.
 */
import { Registry } from 'prom-client';
import { findCondition, isTrue } from '../../src/api/conditions.js';
import { LABEL_RUN } from '../../src/api/labels.js';
import { AgentRuns } from '../../src/api/v1alpha1/agent-run.js';
import { AgentSchedules } from '../../src/api/v1alpha1/agent-schedule.js';
import { Agents } from '../../src/api/v1alpha1/agent.js';
import { Boxes } from '../../src/api/v1alpha1/box.js';
import { Workspaces } from '../../src/api/v1alpha1/workspace.js';
import { Jobs, Leases, Pods } from '../../src/kube/core-types.js';
import { createLogger } from '../../src/observability/logger.js';
import { CONTROLLER_LEASE } from '../../src/processes/controller.js';
import type { Clock } from '../../src/runtime/clock.js';
import { systemClock } from '../../src/runtime/clock.js';
import { eventually, startApiServer } from '../builders/api-server.js';
import type { TestApiServer } from '../builders/api-server.js';
import { createRelease, startReplica } from '../builders/controller-replica.js';
import type { Replica } from '../builders/controller-replica.js';
import { createObject, objectWhen } from '../builders/objects.js';

const RELEASE = 'boxwright-clocks-test';
const NAMESPACE = 'bw-clocks';
const HOUR_MS = 3_600_000;
const RESYNC_MS = 300;
/** Looks at every run of a phase, so that each bound was judged by the time that was then believed. */
const LOOKS = 60;

/** The clock of a node, which a person can set. */
class NodeClock implements Clock {
  aheadMs = 0;
  now = () => systemClock.now() + this.aheadMs;
  monotonic = () => systemClock.monotonic();
  after = (ms: number, callback: () => void) => systemClock.after(ms, callback);
}

interface Node {
  wall: NodeClock;
  registry: Registry;
  replica: Replica;
}

let server: TestApiServer;
const nodes: Node[] = [];
const errors: string[] = [];
const lost: string[] = [];

beforeAll(async () => {
  server = await startApiServer({ own: true });
  await server.applyCrds();
  await createRelease(server, RELEASE);
  nodes.push(await startNode('controller-0', 0), await startNode('controller-1', 0));
  await createObject(server.api, Workspaces, { name: 'clocks' }, { slots: 2 });
  const spec = { workspace: 'clocks', engine: 'scripted', egress: { requireEnforcement: false }, maxRunning: 2 };
  // Longer than a slow machine needs for all of this, shorter than the jumps.
  const bounds = { podCreatedSeconds: 3600 };
  await createObject(server.api, Boxes, { name: 'clocks' }, { ...spec, bounds });
  await objectWhen(server.api, Boxes, { name: 'clocks' }, ({ status }) => isTrue(status?.conditions, 'Ready'), errors);
  await createObject(server.api, Agents, { name: 'ada', namespace: NAMESPACE }, { name: 'ada' });
  const agent = { name: 'ada', namespace: NAMESPACE };
  await objectWhen(server.api, Agents, agent, ({ status }) => status?.active === true, errors);
  await seedRuns();
}, 1_200_000);

afterAll(async () => {
  for (const { replica } of nodes) await replica.stop();
  await server.stop();
}, 120_000);

async function startNode(podName: string, aheadMs: number): Promise<Node> {
  const wall = new NodeClock();
  wall.aheadMs = aheadMs;
  const registry = new Registry();
  const replica = await startReplica({
    server,
    releaseNamespace: RELEASE,
    podName,
    log: createLogger('test', 'error', { write: (line) => errors.push(line) }),
    onLost: (error) => lost.push(String(error)),
    // The older of two finished runs may go after an hour, and not before.
    config: { retentionRunsPerAgent: 1, retentionMinAgeHours: 1 },
    registry,
    wall,
    resyncMs: RESYNC_MS,
  });
  return { wall, registry, replica };
}

const ofRun = (name: string) => ({ namespace: NAMESPACE, name });
const runs = async () => (await server.api.list(AgentRuns, { namespace: NAMESPACE })).items;

function setStatus(name: string, status: object): Promise<unknown> {
  return server.api.patch(AgentRuns, ofRun(name), { status }, { type: 'merge', subresource: 'status' });
}

/** Two that ended, one that works, one whose Job has no pod yet, one that waits for its turn. */
async function seedRuns(): Promise<void> {
  const create = (name: string) => createObject(server.api, AgentRuns, ofRun(name), { agent: 'ada', message: 'hello' });
  for (const name of ['ended-1', 'ended-2']) {
    await create(name);
    await claim(name);
    const finishedAt = new Date().toISOString();
    await setStatus(name, { phase: 'done', reason: 'Completed', finishedAt, usageFinal: true });
    await objectWhen(server.api, Jobs, ofRun(name), ({ spec }) => spec.ttlSecondsAfterFinished !== undefined, errors);
  }
  await create('working');
  await claim('working');
  await create('podless');
  await objectWhen(server.api, Jobs, ofRun('podless'), () => true, errors);
  await create('waiting');
  const isQueued = ({ status }: { status?: { reason?: string | undefined } | undefined }) =>
    status?.reason === 'BoxLimit';
  await objectWhen(server.api, AgentRuns, ofRun('waiting'), isQueued, errors);
}

/** Plays Job controller, kubelet and gateway: the run's pod runs and has claimed it. */
async function claim(name: string): Promise<void> {
  const job = await objectWhen(server.api, Jobs, ofRun(name), () => true, errors);
  const { uid = '' } = job.metadata;
  const owner = { apiVersion: 'batch/v1', kind: 'Job', name, uid, controller: true };
  const metadata = {
    name: `${name}-pod`,
    namespace: NAMESPACE,
    labels: { [LABEL_RUN]: name },
    ownerReferences: [owner],
  };
  const pod = await createObject(server.api, Pods, metadata, job.spec.template.spec as object);
  const status = { phase: 'Running' };
  await server.api.patch(Pods, ofRun(`${name}-pod`), { status }, { type: 'merge', subresource: 'status' });
  await setStatus(name, {
    claim: {
      podUid: pod.metadata.uid,
      podName: `${name}-pod`,
      at: new Date().toISOString(),
      gatewayPod: 'gateway-0',
      gatewayUid: 'uid',
      gatewayAddress: '10.0.0.1:8443',
      epoch: 1,
    },
  });
}

/** A schedule of one date, so many milliseconds from now by the API server's time. */
async function scheduleIn(slug: string, ms: number): Promise<void> {
  const runAt = new Date(Date.now() + ms).toISOString();
  const spec = { agent: 'ada', name: slug, body: 'Go.', timezone: 'UTC', runAt };
  await createObject(server.api, AgentSchedules, { name: `ada.${slug}`, namespace: NAMESPACE }, spec);
}

async function fired(slug: string): Promise<string | undefined> {
  const { status } = await server.api.get(AgentSchedules, { namespace: NAMESPACE, name: `ada.${slug}` });
  return findCondition(status?.conditions, 'Fired')?.reason;
}

const ticksOf = async (slug: string) => (await runs()).filter(({ spec }) => spec.trigger?.name === slug).length;

async function reconciles({ registry }: Node, controller: string): Promise<number> {
  const metric = await registry.getSingleMetric('boxwright_controller_reconcile_total')?.get();
  const samples = metric?.values.filter(({ labels }) => labels['controller'] === controller) ?? [];
  return samples.reduce((sum, { value }) => sum + value, 0);
}

const leader = () => nodes.filter(({ replica }) => replica.process.isLeading());

/** Resolves when the one that leads has looked at everything again, several times. */
async function looked(): Promise<void> {
  const [node] = leader();
  if (node === undefined) throw new Error('nobody leads');
  const before = await reconciles(node, 'agent-run');
  await eventually(async () => (await reconciles(node, 'agent-run')) >= before + LOOKS, 'nobody looks at the runs');
}

const setClocks = (hours: number) => nodes.forEach(({ wall }) => (wall.aheadMs = hours * HOUR_MS));

/** Nothing of what hours would have done. */
async function expectUntouched(): Promise<void> {
  const seeded = ['ended-1', 'ended-2', 'podless', 'waiting', 'working'];
  const found = (await runs()).filter(({ metadata }) => seeded.includes(metadata.name));
  const shown = found.map(({ metadata, status }) =>
    `${metadata.name}: ${status?.phase} ${status?.reason ?? ''}`.trim(),
  );
  expect(shown.toSorted((a, b) => (a < b ? -1 : 1))).toEqual([
    'ended-1: done Completed',
    'ended-2: done Completed',
    'podless: running',
    'waiting: running BoxLimit',
    'working: running',
  ]);
  expect(found.filter(({ metadata }) => metadata.deletionTimestamp !== undefined)).toEqual([]);
  expect((await server.api.list(Jobs, { namespace: NAMESPACE })).items.map(({ metadata }) => metadata.name)).toEqual(
    expect.arrayContaining(['podless', 'working']),
  );
  expect([await fired('later'), await ticksOf('later')]).toEqual([undefined, 0]);
  expect([errors, lost]).toEqual([[], []]);
}

const lease = async () => (await server.api.get(Leases, { namespace: RELEASE, name: CONTROLLER_LEASE })).spec ?? {};

test('a clock that jumps two hours ahead, two hours back and home again ends, fires and deletes nothing, and costs nobody the lead', async () => {
  await scheduleIn('later', 90 * 60_000);
  const before = await lease();
  for (const [phase, hours] of [2, -2, 0].entries()) {
    setClocks(hours);
    // Due in this phase: with the wrong time it would be missed, or not come for hours.
    await scheduleIn(`due-${phase}`, 2_000);
    await looked();
    await eventually(async () => (await fired(`due-${phase}`)) !== undefined, `the tick of phase ${phase} never comes`);
    await looked();
    for (let earlier = 0; earlier <= phase; earlier++) {
      expect([await fired(`due-${earlier}`), await ticksOf(`due-${earlier}`)]).toEqual(['Fired', 1]);
    }
    await expectUntouched();
    expect(leader()).toHaveLength(1);
  }
  const { holderIdentity, leaseTransitions, renewTime = '' } = await lease();
  expect([holderIdentity, leaseTransitions]).toEqual([before.holderIdentity, before.leaseTransitions]);
  expect(Math.abs(Date.now() - Date.parse(renewTime))).toBeLessThan(HOUR_MS);
}, 300_000);

test.each([
  ['ahead', 2],
  ['behind', -2],
])(
  'a replica that begins two hours %s and takes over does no harm either',
  async (name, hours) => {
    nodes.push(await startNode(`controller-${name}`, hours * HOUR_MS));
    const { leaseTransitions = 0 } = await lease();
    // The Lease goes to whoever asks first: all others go, one after the other.
    while (nodes.length > 1) await nodes.shift()?.replica.stop();
    await eventually(() => leader().length === 1, 'the last one does not lead');
    const [node] = leader();
    if (node === undefined) throw new Error('nobody leads');
    await eventually(async () => (await reconciles(node, 'retention')) > 0, 'retention makes no pass');
    await scheduleIn(name, 2_000);
    await eventually(async () => (await fired(name)) !== undefined, 'the tick never comes');
    await looked();
    expect([await fired(name), await ticksOf(name)]).toEqual(['Fired', 1]);
    await expectUntouched();
    expect((await lease()).leaseTransitions).toBeGreaterThan(leaseTransitions);
  },
  300_000,
);
