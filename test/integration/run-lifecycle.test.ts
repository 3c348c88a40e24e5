/**
 * Retention, detectors and pauses of the controller process on a real API server. There is no kubelet, no scheduler and no
 * Job controller: the tests play nodes, pods and events by writing them.
 */
import { createHash } from 'node:crypto';
import { gzipSync } from 'node:zlib';
import { Registry } from 'prom-client';
import { FINALIZER_ROLL_UP, LABEL_RUN } from '../../src/api/labels.js';
import type { KubeObject, ResourceType } from '../../src/api/meta.js';
import { chunkName } from '../../src/api/names.js';
import { findCondition, isTrue } from '../../src/api/conditions.js';
import { AgentRunChunks } from '../../src/api/v1alpha1/agent-run-chunk.js';
import { AgentRuns } from '../../src/api/v1alpha1/agent-run.js';
import type { AgentRun } from '../../src/api/v1alpha1/agent-run.js';
import { AgentTriggers, MAX_TRIGGER_BODY_BYTES } from '../../src/api/v1alpha1/agent-trigger.js';
import { Agents } from '../../src/api/v1alpha1/agent.js';
import { Boxes } from '../../src/api/v1alpha1/box.js';
import { Workspaces } from '../../src/api/v1alpha1/workspace.js';
import { Events, Jobs, Namespaces, Nodes, Pods } from '../../src/kube/core-types.js';
import type { Job, Pod } from '../../src/kube/core-types.js';
import { controllerReference } from '../../src/kube/owner-references.js';
import type { ObjectRef } from '../../src/kube/types.js';
import { eventually } from '../builders/api-server.js';
import type { TestApiServer } from '../builders/api-server.js';
import { createObject, objectWhen, readObject } from '../builders/objects.js';
import { startSingleController } from '../builders/single-controller.js';
import type { SingleController } from '../builders/single-controller.js';

const RELEASE = 'boxwright-lifecycle-test';
const BOX = 'life';
const NAMESPACE = `bw-${BOX}`;
const HOUR = 3_600_000;
const KEPT = 20;

describe('the life of runs', () => {
  let server: TestApiServer;
  let controller: SingleController;
  const registry = new Registry();
  const errors: string[] = [];

  beforeAll(async () => {
    const config = { retentionRunsPerAgent: KEPT, retentionBoxMebibytes: 1 };
    controller = await startSingleController({ releaseNamespace: RELEASE, config, registry, errors });
    server = controller.server;
    await create(Workspaces, { name: 'life' }, { slots: 10 });
    const bounds = { heartbeatSeconds: 1, containerCreateSeconds: 1 };
    for (const name of [BOX, 'doomed']) {
      await create(
        Boxes,
        { name },
        { workspace: 'life', engine: 'scripted', maxRunning: 100, bounds, egress: { requireEnforcement: false } },
      );
      await waitFor(Boxes, { name }, (box) => isTrue(box.status?.conditions, 'Ready'));
      await create(Agents, { name: 'ada', namespace: `bw-${name}` }, { name: 'Ada' });
      await waitFor(Agents, { name: 'ada', namespace: `bw-${name}` }, ({ status }) => status?.active === true);
    }
  }, 1_200_000);

  afterAll(() => controller.stop());

  const create = <T extends KubeObject>(type: ResourceType<T>, metadata: KubeObject['metadata'], spec?: object) =>
    createObject(server.api, type, metadata, spec);
  const read = <T extends KubeObject>(type: ResourceType<T>, ref: ObjectRef) => readObject(server.api, type, ref);
  const waitFor = <T extends KubeObject>(type: ResourceType<T>, ref: ObjectRef, check: (object: T) => boolean) =>
    objectWhen(server.api, type, ref, check, errors);

  const ofRun = (name: string) => ({ namespace: NAMESPACE, name });
  const setStatus = (name: string, status: object) =>
    server.api.patch(AgentRuns, ofRun(name), { status }, { type: 'merge', subresource: 'status' });

  /** A run that ended so many hours ago, as the API and the gateway leave it. */
  async function createFinished(name: string, hours: number, more: { spec?: object; status?: object } = {}) {
    const agentUid = (await server.api.get(Agents, ofRun('ada'))).metadata.uid;
    const spec = { agent: 'ada', agentUid, ...(more.spec ?? { message: 'hello' }) };
    await create(AgentRuns, { ...ofRun(name), finalizers: [FINALIZER_ROLL_UP] }, spec);
    await setStatus(name, {
      phase: 'done',
      reason: 'Completed',
      finishedAt: new Date(Date.now() - hours * HOUR).toISOString(),
      usage: { steps: 1, inputTokens: 2, outputTokens: 1, totalTokens: 3, costUsd: '0.000001' },
      usageFinal: true,
      ...more.status,
    });
  }

  async function createChunk(run: string): Promise<void> {
    const owner = await server.api.get(AgentRuns, ofRun(run));
    const spec = { run, runUid: owner.metadata.uid, seq: 0, bytes: 1, sha256: '', data: '' };
    const ownerReferences = [controllerReference(AgentRuns, owner)];
    await create(AgentRunChunks, { namespace: NAMESPACE, name: chunkName(run, 0), ownerReferences }, spec);
  }

  /** What was written is counted when its answer is there: others may read it earlier. */
  const metricsShow = (line: RegExp) =>
    eventually(async () => line.test(await registry.metrics()), `no metric ${line.source}`);

  const stored = (mebibytes: number) => ({
    transcript: { state: 'full', chunks: 1, bytes: 1, storedBytes: Math.round(mebibytes * 1024 * 1024) },
  });

  async function startRun(name: string, namespace = NAMESPACE): Promise<Job> {
    await create(AgentRuns, { name, namespace }, { agent: 'ada', message: 'hello' });
    return await waitFor(Jobs, { name, namespace }, () => true);
  }

  async function playPod(job: Job, node: string, status: Pod['status']): Promise<Pod> {
    const { name, uid = '' } = job.metadata;
    const owner = { apiVersion: 'batch/v1', kind: 'Job', name, uid, controller: true };
    const metadata = { ...ofRun(`${name}-pod`), labels: { [LABEL_RUN]: name }, ownerReferences: [owner] };
    await create(Pods, metadata, { ...job.spec.template.spec, nodeName: node });
    return await server.api.patch(Pods, ofRun(`${name}-pod`), { status }, { type: 'merge', subresource: 'status' });
  }

  async function playNode(name: string, ready: 'True' | 'Unknown'): Promise<void> {
    if ((await read(Nodes, { name })) === undefined) await create(Nodes, { name });
    const condition = { type: 'Ready', status: ready, reason: 'Played', message: 'played by the test' };
    const now = new Date().toISOString().replace(/\.\d+Z$/, 'Z');
    const conditions = [{ ...condition, lastTransitionTime: now, lastHeartbeatTime: now }];
    await server.api.patch(Nodes, { name }, { status: { conditions } }, { type: 'merge', subresource: 'status' });
  }

  async function warn(uid: string, kind: string, text: { reason: string; message: string }): Promise<void> {
    const now = new Date().toISOString().replace(/\.\d+Z$/, 'Z');
    await server.api.create(Events, {
      apiVersion: 'v1',
      kind: 'Event',
      metadata: { namespace: NAMESPACE, name: `event-${createHash('sha256').update(uid).digest('hex').slice(0, 12)}` },
      involvedObject: { kind, namespace: NAMESPACE, name: 'any', uid },
      type: 'Warning',
      lastTimestamp: now,
      ...text,
    });
  }

  const scheduled = () => ({
    type: 'PodScheduled',
    status: 'True',
    lastTransitionTime: new Date().toISOString().replace(/\.\d+Z$/, 'Z'),
  });
  const ended = (name: string, namespace = NAMESPACE): Promise<AgentRun> =>
    waitFor(AgentRuns, { name, namespace }, ({ status }) => status?.phase === 'error');

  it('removes hundreds of old runs with their chunks, keeps the newest, and the totals stay exact', async () => {
    const names = Array.from({ length: 300 }, (_, i) => `old-${String(i).padStart(3, '0')}`);
    // The first batch is no more than what stays, so that no run is removed before its chunk is there.
    for (let i = 0; i < names.length; i += KEPT) {
      await Promise.all(
        names.slice(i, i + KEPT).map(async (name, offset) => {
          await createFinished(name, 400 - i - offset, i === 0 ? { status: stored(0) } : {});
          if (i === 0) await createChunk(name);
        }),
      );
    }
    // Much has ended: the next pass comes at once. The oldest loses its input and its transcript, and stays.
    const text = Buffer.from('hello '.repeat(1000));
    const input = { encoding: 'gzip', bytes: text.length, sha256: 'aa', data: gzipSync(text).toString('base64') };
    await createFinished('large-1', 2, { spec: { input }, status: stored(0.6) });
    await createChunk('large-1');
    await createFinished('large-2', 1, { status: stored(0.6) });
    const left = async () => (await server.api.list(AgentRuns, { namespace: NAMESPACE })).items;
    await eventually(async () => (await left()).length === KEPT, 'old runs are still there');
    const kept = [...names.slice(-(KEPT - 2)), 'large-1', 'large-2'].sort();
    expect((await left()).map(({ metadata }) => metadata.name).sort()).toEqual(kept);
    const expired = await waitFor(AgentRuns, ofRun('large-1'), ({ status }) => status?.transcript?.state === 'expired');
    expect(expired.spec.input).toEqual({ encoding: 'gzip', bytes: text.length, sha256: 'aa' });
    expect((await server.api.get(AgentRuns, ofRun('large-2'))).status?.transcript?.state).toBe('full');
    expect((await server.api.list(AgentRunChunks, { namespace: NAMESPACE })).items).toEqual([]);
    const agent = await server.api.get(Agents, ofRun('ada'));
    expect(agent.status?.folded).toMatchObject({ runs: 302 - KEPT, inputTokens: 2 * (302 - KEPT) });
    await metricsShow(/^boxwright_retention_actions_total\{action="expire",rule="box-bytes"\} 1$/m);
  });

  it('returns a run to the queue when quota refuses its pod, in the words of Kubernetes', async () => {
    const job = await startRun('no-quota');
    await warn(job.metadata.uid ?? '', 'Job', {
      reason: 'FailedCreate',
      message: 'forbidden: exceeded quota: boxwright',
    });
    const run = await waitFor(AgentRuns, ofRun('no-quota'), ({ status }) => status?.reason === 'NoCapacity');
    expect(run.status?.message).toContain('exceeded quota: boxwright');
    await server.api.patch(AgentRuns, ofRun('no-quota'), { spec: { cancelRequested: true } }, { type: 'merge' });
  });

  it('ends a run that had not begun on a node that is not ready, and one whose node is gone', async () => {
    await server.api.patch(Boxes, { name: BOX }, { spec: { maxRunning: 99 } }, { type: 'merge' });
    for (const node of ['node-a', 'node-b']) await playNode(node, 'True');
    await playPod(await startRun('cut-off'), 'node-a', { phase: 'Pending', conditions: [scheduled()] });
    await playPod(await startRun('removed'), 'node-b', { phase: 'Pending', conditions: [scheduled()] });
    await playNode('node-a', 'Unknown');
    expect((await ended('cut-off')).status).toMatchObject({
      reason: 'NodeLost',
      message: expect.stringContaining('Node node-a is not ready (played by the test)'),
    });
    await server.api.delete(Nodes, { name: 'node-b' });
    expect((await ended('removed')).status).toMatchObject({
      reason: 'NodeLost',
      message: expect.stringContaining('Node node-b is not in the cluster any more.'),
    });
  });

  it('ends a run whose pod gets no sandbox, with what the node says', async () => {
    await playNode('node-c', 'True');
    const pod = await playPod(await startRun('no-sandbox'), 'node-c', { phase: 'Pending' });
    await warn(pod.metadata.uid ?? '', 'Pod', { reason: 'FailedCreatePodSandBox', message: 'no runtime for gvisor' });
    const conditions = [scheduled(), { type: 'PodReadyToStartContainers', status: 'False' }];
    const status = { conditions };
    await server.api.patch(Pods, ofRun('no-sandbox-pod'), { status }, { type: 'merge', subresource: 'status' });
    expect((await ended('no-sandbox')).status).toMatchObject({
      reason: 'ContainerCreateFailed',
      message: expect.stringContaining('Kubernetes says: FailedCreatePodSandBox: no runtime for gvisor.'),
    });
  });

  it('lets runs of a paused Box wait, and ends them when its namespace is deleted', async () => {
    await server.api.patch(Boxes, { name: 'doomed' }, { spec: { paused: true } }, { type: 'merge' });
    // The controller decides by its cache, so it has to have seen the pause before there is a run.
    await waitFor(Boxes, { name: 'doomed' }, ({ metadata, status }) => {
      return findCondition(status?.conditions, 'Ready')?.observedGeneration === metadata.generation;
    });
    const ref = { name: 'waits', namespace: 'bw-doomed' };
    await create(AgentRuns, ref, { agent: 'ada', message: 'hello' });
    await waitFor(AgentRuns, ref, ({ status }) => status?.reason === 'BoxPaused');
    await server.api.delete(Namespaces, { name: 'bw-doomed' });
    expect((await ended('waits', 'bw-doomed')).status?.reason).toBe('NamespaceTerminating');
    expect(await read(Jobs, ref)).toBeUndefined();
  });

  it('counts how runs ended', async () => {
    for (const reason of ['NodeLost', 'ContainerCreateFailed', 'NamespaceTerminating']) {
      await metricsShow(new RegExp(`boxwright_runs_ended_total\\{reason="${reason}"\\} [1-9]`));
    }
  });

  it('refuses an instruction that leaves no room for the payload, counted in bytes', async () => {
    const spec = (body: string) => ({ agent: 'ada', name: 'Deploy', body });
    const ref = { namespace: NAMESPACE, name: 'ada.deploy' };
    const tooLong = 'é'.repeat(MAX_TRIGGER_BODY_BYTES / 2 + 1);
    await expect(create(AgentTriggers, ref, spec(tooLong))).rejects.toThrow('spec.body must have at most 61440 bytes');
    await create(AgentTriggers, ref, spec('é'.repeat(MAX_TRIGGER_BODY_BYTES / 2)));
    const patch = (body: string) => server.api.patch(AgentTriggers, ref, { spec: { body } }, { type: 'merge' });
    await expect(patch(tooLong)).rejects.toThrow('spec.body must have at most 61440 bytes');
    await server.api.patch(AgentTriggers, ref, { spec: { dedupeHeader: 'X-GitHub-Delivery' } }, { type: 'merge' });
    await expect(
      server.api.patch(AgentTriggers, ref, { spec: { dedupeHeader: 'not a header' } }, { type: 'merge' }),
    ).rejects.toThrow('dedupeHeader');
  });

  it('logged no error', () => {
    expect(errors).toEqual([]);
  });
});
