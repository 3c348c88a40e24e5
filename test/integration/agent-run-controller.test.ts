/**
 * The controller process as it runs in a pod, twice, on a real API server. There is no kubelet and no Job controller: the
 * tests play pods and the gateway by writing their statuses.
 */
import { FINALIZER_ROLL_UP, LABEL_RUN } from '../../src/api/labels.js';
import type { KubeObject, ResourceType } from '../../src/api/meta.js';
import { AgentRuns } from '../../src/api/v1alpha1/agent-run.js';
import type { AgentRun } from '../../src/api/v1alpha1/agent-run.js';
import { Agents } from '../../src/api/v1alpha1/agent.js';
import { Boxes } from '../../src/api/v1alpha1/box.js';
import type { Box } from '../../src/api/v1alpha1/box.js';
import { Workspaces } from '../../src/api/v1alpha1/workspace.js';
import { findCondition, isTrue } from '../../src/api/conditions.js';
import { Jobs, Leases, Pods } from '../../src/kube/core-types.js';
import type { Job, Pod } from '../../src/kube/core-types.js';
import { isConflict, isNotFound } from '../../src/kube/errors.js';
import type { ObjectRef } from '../../src/kube/types.js';
import { createLogger } from '../../src/observability/logger.js';
import { eventually, startApiServer } from '../builders/api-server.js';
import type { TestApiServer } from '../builders/api-server.js';
import { createRelease, startReplica } from '../builders/controller-replica.js';
import type { Replica } from '../builders/controller-replica.js';
import { createObject, objectGone, objectWhen, readObject } from '../builders/objects.js';

const apiVersion = 'boxwright.dev/v1alpha1';
const RELEASE = 'boxwright-runs-test';
const WORKSPACE = 'runs';
const NAMESPACE = 'bw-runs';

describe('the controller process', () => {
  let server: TestApiServer;
  let replicas: Replica[] = [];
  let foreground: { stop(): Promise<void> };
  const errors: string[] = [];

  beforeAll(async () => {
    server = await startApiServer({ own: true });
    await server.applyCrds();
    await createRelease(server, RELEASE);
    replicas = [await replica('controller-0'), await replica('controller-1')];
    foreground = playForegroundDeletion();
    await create(Workspaces, { name: WORKSPACE }, { slots: 2 });
    const egress = { requireEnforcement: false };
    await create(Boxes, { name: 'runs' }, { workspace: WORKSPACE, engine: 'scripted', egress });
    await waitFor(Boxes, { name: 'runs' }, (box) => isTrue(box.status?.conditions, 'Ready'));
    await createAgent('ada');
  }, 1_200_000);

  afterAll(async () => {
    for (const one of replicas) await one.stop();
    await foreground.stop();
    await server.stop();
  });

  const replica = (podName: string) =>
    startReplica({
      server,
      releaseNamespace: RELEASE,
      podName,
      log: createLogger('test', 'error', { write: (line) => errors.push(line) }),
      onLost: (error) => errors.push(String(error)),
    });

  /** As the garbage collector for foreground deletion: children first, then the finalizer goes. */
  function playForegroundDeletion() {
    const stopping = new AbortController();
    const round = async (type: ResourceType) => {
      for (const { metadata } of (await server.api.list(type)).items) {
        const finalizers = metadata.finalizers?.filter((name) => name !== 'foregroundDeletion') ?? [];
        if (finalizers.length === (metadata.finalizers?.length ?? 0)) continue;
        const body = { metadata: { resourceVersion: metadata.resourceVersion, finalizers } };
        const ref =
          metadata.namespace === undefined
            ? { name: metadata.name }
            : { name: metadata.name, namespace: metadata.namespace };
        await server.api.patch(type, ref, body, { type: 'merge' }).catch((error: unknown) => {
          if (!isConflict(error) && !isNotFound(error)) throw error;
        });
      }
    };
    const ended = (async () => {
      while (!stopping.signal.aborted) {
        await round(AgentRuns);
        await round(Agents);
        await new Promise((resolve) => setTimeout(resolve, 50));
      }
    })();
    return {
      stop: async () => {
        stopping.abort();
        await ended;
      },
    };
  }

  const create = (type: ResourceType, metadata: KubeObject['metadata'], spec?: object) =>
    createObject(server.api, type, metadata, spec);

  async function createAgent(name: string) {
    await create(Agents, { name, namespace: NAMESPACE }, { name });
    return await waitFor(Agents, { name, namespace: NAMESPACE }, (agent) => agent.status?.active !== undefined);
  }

  /** A run as a five-line manifest, or as the API makes it. */
  async function createRun(name: string, agent = 'ada', agentUid?: string): Promise<AgentRun> {
    const finalizers = agentUid === undefined ? [] : [FINALIZER_ROLL_UP];
    return await server.api.create(AgentRuns, {
      apiVersion,
      kind: 'AgentRun',
      metadata: { name, namespace: NAMESPACE, finalizers },
      spec: { agent, message: 'hello', ...(agentUid === undefined ? {} : { agentUid }) },
    });
  }

  const read = <T extends KubeObject>(type: ResourceType<T>, ref: ObjectRef) => readObject(server.api, type, ref);
  const waitFor = <T extends KubeObject>(type: ResourceType<T>, ref: ObjectRef, check: (object: T) => boolean) =>
    objectWhen(server.api, type, ref, check, errors);
  const waitUntilGone = (type: ResourceType, ref: ObjectRef) => objectGone(server.api, type, ref);

  const ofRun = (name: string) => ({ namespace: NAMESPACE, name });
  const waitForJob = (name: string) => waitFor(Jobs, ofRun(name), () => true);
  const waitForRun = (name: string, check: (run: AgentRun) => boolean) => waitFor(AgentRuns, ofRun(name), check);

  async function playPod(job: Job, status: Pod['status']): Promise<Pod> {
    const { name, uid = '' } = job.metadata;
    const pod = await server.api.create(Pods, {
      apiVersion: 'v1',
      kind: 'Pod',
      metadata: {
        name: `${name}-pod`,
        namespace: NAMESPACE,
        labels: { [LABEL_RUN]: name },
        ownerReferences: [{ apiVersion: 'batch/v1', kind: 'Job', name, uid, controller: true }],
      },
      spec: job.spec.template.spec,
    });
    return await server.api.patch(Pods, ofRun(pod.metadata.name), { status }, { type: 'merge', subresource: 'status' });
  }

  async function playGateway(name: string, status: Record<string, unknown>): Promise<void> {
    await server.api.patch(AgentRuns, ofRun(name), { status }, { type: 'merge', subresource: 'status' });
  }

  const claimBy = (pod: Pod) => ({
    claim: {
      podUid: pod.metadata.uid,
      podName: pod.metadata.name,
      at: new Date().toISOString(),
      gatewayPod: 'gateway-0',
      gatewayUid: 'uid',
      gatewayAddress: '10.0.0.1:8443',
      epoch: 1,
    },
  });

  const finish = (tokens: number) => ({
    phase: 'done',
    reason: 'Completed',
    finishedAt: new Date().toISOString(),
    usage: { steps: 1, inputTokens: tokens, outputTokens: 1, totalTokens: tokens + 1, costUsd: '0.000001' },
    usageFinal: true,
  });

  async function runToEnd(name: string, tokens: number, agentUid?: string, agent = 'ada'): Promise<void> {
    await createRun(name, agent, agentUid);
    const pod = await playPod(await waitForJob(name), { phase: 'Running' });
    await playGateway(name, claimBy(pod));
    await playGateway(name, finish(tokens));
    await waitFor(Jobs, ofRun(name), (job) => job.spec.ttlSecondsAfterFinished === 600);
  }

  const PROBE = { namespace: 'bw-guarded', name: 'boxwright-network-probe' };
  const reasonOf = (box: Box) => findCondition(box.status?.conditions, 'Ready')?.reason;

  /** Plays kubelet and Job controller: the pod of the network probe ends with a report that these were reached. */
  async function endProbe(...reachable: string[]): Promise<void> {
    const { metadata, spec } = await server.api.get(Jobs, PROBE);
    const { namespace } = PROBE;
    const { name } = await createProbePod(metadata.uid ?? '', spec.template);
    const targets = ['gateway', 'api', 'kubernetes'].map((target) => ({
      name: target,
      reachable: reachable.includes(target),
    }));
    const terminated = { exitCode: 0, message: JSON.stringify({ targets }) };
    const containerStatuses = [{ name: 'network-probe', restartCount: 0, state: { terminated } }];
    const status = { phase: 'Succeeded', containerStatuses };
    await server.api.patch(Pods, { namespace, name }, { status }, { type: 'merge', subresource: 'status' });
    const now = new Date().toISOString().replace(/\.\d+Z$/, 'Z');
    const condition = (type: string) => ({ type, status: 'True', lastProbeTime: now, lastTransitionTime: now });
    const conditions = [condition('SuccessCriteriaMet'), condition('Complete')];
    const ended = { conditions, startTime: now, completionTime: now, succeeded: 1, uncountedTerminatedPods: {} };
    await server.api.patch(Jobs, PROBE, { status: ended }, { type: 'merge', subresource: 'status' });
  }

  async function createProbePod(jobUid: string, template: Job['spec']['template']) {
    const pod = await server.api.create(Pods, {
      apiVersion: 'v1',
      kind: 'Pod',
      metadata: {
        ...template.metadata,
        name: `probe-${jobUid}`,
        namespace: PROBE.namespace,
        ownerReferences: [{ apiVersion: 'batch/v1', kind: 'Job', name: PROBE.name, uid: jobUid, controller: true }],
      },
      spec: template.spec,
    });
    return pod.metadata;
  }

  async function foldedOf(type: ResourceType, ref: { name: string; namespace?: string }) {
    const owner = (await server.api.get(type, ref)) as KubeObject & {
      status?: { folded?: { runs: number; inputTokens: number } };
    };
    return owner.status?.folded ?? { runs: 0, inputTokens: 0 };
  }

  it('has one leader', () => {
    expect(replicas.map(({ process }) => process.isLeading())).toEqual([true, false]);
  });

  it('turns a five-line manifest into a Job that the API server accepts, and keeps the Job until the outcome is stored', async () => {
    await createRun('by-hand');
    const job = await waitForJob('by-hand');
    const run = await server.api.get(AgentRuns, ofRun('by-hand'));
    expect(run.metadata.finalizers).toEqual([FINALIZER_ROLL_UP]);
    expect(run.status?.agentUid).toBe((await server.api.get(Agents, ofRun('ada'))).metadata.uid);
    expect(job.metadata.ownerReferences).toMatchObject([{ kind: 'AgentRun', uid: run.metadata.uid, controller: true }]);
    expect(job.spec).toMatchObject({ backoffLimit: 0, podReplacementPolicy: 'Failed' });
    expect(job.spec.ttlSecondsAfterFinished).toBeUndefined();
    const pod = await playPod(job, { phase: 'Running' });
    await playGateway('by-hand', claimBy(pod));
    await playGateway('by-hand', finish(3));
    await waitFor(Jobs, ofRun('by-hand'), ({ spec }) => spec.ttlSecondsAfterFinished === 600);
  });

  it('writes a short run of the API never: what it writes is the Job', async () => {
    const { uid } = (await server.api.get(Agents, ofRun('ada'))).metadata;
    const created = await createRun('short', 'ada', uid);
    await waitForJob('short');
    const run = await server.api.get(AgentRuns, ofRun('short'));
    expect(run.metadata.resourceVersion).toBe(created.metadata.resourceVersion);
    expect(run.status).toEqual({ phase: 'running' });
    await server.api.delete(AgentRuns, ofRun('short'));
    await waitUntilGone(AgentRuns, ofRun('short'));
  });

  it('ends a run whose agent is not there, and says what to do', async () => {
    await createRun('lost', 'nobody');
    const run = await waitForRun('lost', ({ status }) => status?.phase === 'error');
    expect(run.status).toMatchObject({ reason: 'AgentNotFound', message: expect.stringContaining('nobody') });
  });

  it('lets the run of an agent without a slot wait, and starts it when a slot is free', async () => {
    await createAgent('bob');
    const carl = await createAgent('carl');
    expect(carl.status?.active).toBe(false);
    await createRun('waits', 'carl');
    await waitForRun('waits', ({ status }) => status?.reason === 'AgentInactive');
    expect(await read(Jobs, ofRun('waits'))).toBeUndefined();
    await server.api.delete(Agents, ofRun('bob'));
    await waitForJob('waits');
    await server.api.delete(Agents, ofRun('carl'));
    await waitUntilGone(Agents, ofRun('carl'));
    expect(await read(AgentRuns, ofRun('waits'))).toBeUndefined();
  });

  it('ends a run whose image cannot be pulled, and removes its Job', async () => {
    await createRun('no-image');
    const waiting = { reason: 'InvalidImageName', message: 'invalid reference format' };
    await playPod(await waitForJob('no-image'), {
      conditions: [{ type: 'PodScheduled', status: 'True', lastTransitionTime: new Date().toISOString() }],
      containerStatuses: [{ name: 'runner', restartCount: 0, state: { waiting } }],
    });
    const run = await waitForRun('no-image', ({ status }) => status?.phase === 'error');
    expect(run.status).toMatchObject({
      reason: 'ImagePullFailed',
      message: expect.stringContaining('invalid reference'),
    });
    await eventually(async () => {
      const job = await read(Jobs, ofRun('no-image'));
      return job === undefined || job.metadata.deletionTimestamp !== undefined;
    }, 'the Job is still there');
  });

  it('takes the outcome from the termination message when no gateway was there', async () => {
    await createRun('alone');
    const pod = await playPod(await waitForJob('alone'), { phase: 'Running' });
    await playGateway('alone', claimBy(pod));
    const message = JSON.stringify({
      v: 1,
      reason: 'Completed',
      message: '',
      output: 'fine',
      outputTruncated: false,
      steps: 1,
    });
    const terminated = { exitCode: 0, message };
    const status = {
      phase: 'Succeeded',
      containerStatuses: [{ name: 'runner', restartCount: 0, state: { terminated } }],
    };
    await server.api.patch(Pods, ofRun('alone-pod'), { status }, { type: 'merge', subresource: 'status' });
    const run = await waitForRun('alone', ({ status: now }) => now?.phase === 'done');
    expect(run.status).toMatchObject({ reason: 'Completed', output: 'fine' });
  });

  it('cancels a working run that is deleted, in the foreground too, and counts it', async () => {
    const before = await foldedOf(Boxes, { name: 'runs' });
    for (const [name, propagationPolicy] of [
      ['bye-b', 'Background'],
      ['bye-f', 'Foreground'],
    ] as const) {
      await createRun(name);
      await waitForJob(name);
      await server.api.delete(AgentRuns, ofRun(name), { propagationPolicy });
      await waitUntilGone(AgentRuns, ofRun(name));
    }
    expect((await foldedOf(Boxes, { name: 'runs' })).runs - before.runs).toBe(2);
  });

  it.each(['Background', 'Foreground'] as const)(
    'counts every run once when an agent is deleted (%s)',
    async (propagationPolicy) => {
      const name = `gone-${propagationPolicy.toLowerCase()}`;
      const { uid } = (await createAgent(name)).metadata;
      const [box, workspace] = [
        await foldedOf(Boxes, { name: 'runs' }),
        await foldedOf(Workspaces, { name: WORKSPACE }),
      ];
      for (const [i, tokens] of [1, 10, 100].entries()) await runToEnd(`${name}-${i}`, tokens, uid, name);
      await createRun(`${name}-waits`, name, uid);
      await server.api.delete(Agents, ofRun(name), { propagationPolicy });
      await waitUntilGone(Agents, ofRun(name));
      for (const i of ['0', '1', '2', 'waits']) expect(await read(AgentRuns, ofRun(`${name}-${i}`))).toBeUndefined();
      const [boxNow, workspaceNow] = [
        await foldedOf(Boxes, { name: 'runs' }),
        await foldedOf(Workspaces, { name: WORKSPACE }),
      ];
      expect(boxNow.runs - box.runs).toBe(4);
      expect(boxNow.inputTokens - box.inputTokens).toBe(111);
      expect(workspaceNow.runs - workspace.runs).toBe(4);
      expect(workspaceNow.inputTokens - workspace.inputTokens).toBe(111);
    },
  );

  it('shows runs and cost of an agent to kubectl, live and removed ones together', async () => {
    const before = (await server.api.get(Agents, ofRun('ada'))).status?.runs ?? 0;
    const { uid } = (await server.api.get(Agents, ofRun('ada'))).metadata;
    await runToEnd('shown-1', 5, uid);
    await runToEnd('shown-2', 5, uid);
    await waitFor(Agents, ofRun('ada'), ({ status }) => (status?.runs ?? 0) >= before + 2);
    await server.api.delete(AgentRuns, ofRun('shown-1'));
    await waitUntilGone(AgentRuns, ofRun('shown-1'));
    const agent = await waitFor(Agents, ofRun('ada'), ({ status }) => (status?.folded?.runs ?? 0) > 0);
    const live = (await server.api.list(AgentRuns, { namespace: NAMESPACE })).items;
    const counted = live.filter(
      ({ spec, metadata }) => spec.agent === 'ada' && metadata.finalizers?.includes(FINALIZER_ROLL_UP) === true,
    );
    const total = counted.length + (agent.status?.folded?.runs ?? 0);
    await waitFor(Agents, ofRun('ada'), ({ status }) => status?.runs === total && status.costUsd !== undefined);
  });

  it('lets runs wait until a probe has shown that the network enforces the policies of their Box', async () => {
    await create(Workspaces, { name: 'guarded' }, { slots: 2 });
    await create(Boxes, { name: 'guarded' }, { workspace: 'guarded', engine: 'scripted' });
    const probing = await waitFor(Boxes, { name: 'guarded' }, (box) => reasonOf(box) === 'NetworkProbing');
    expect(probing.spec.egress).toEqual({ mode: 'none', requireEnforcement: true });
    await waitFor(Jobs, PROBE, () => true);
    await create(Agents, { name: 'eve', namespace: 'bw-guarded' }, { name: 'Eve' });
    await create(AgentRuns, { name: 'guarded-run', namespace: 'bw-guarded' }, { agent: 'eve', message: 'hello' });
    await endProbe('gateway', 'api', 'kubernetes');
    const refused = await waitFor(Boxes, { name: 'guarded' }, (box) => reasonOf(box) === 'NetworkNotEnforced');
    expect(findCondition(refused.status?.conditions, 'NetworkEnforced')).toMatchObject({
      status: 'False',
      message: expect.stringContaining('Install a CNI plugin that enforces NetworkPolicy'),
    });
    const waiting = { name: 'guarded-run', namespace: 'bw-guarded' };
    await waitFor(AgentRuns, waiting, ({ status }) => status?.reason === 'BoxNotReady');
    expect(await read(Jobs, waiting)).toBeUndefined();

    // Other policies: what was found no longer counts, and now the network is one that enforces.
    await eventually(async () => (await read(Jobs, PROBE)) === undefined, 'the Job that was read is still there');
    await server.api.patch(Boxes, { name: 'guarded' }, { spec: { egress: { mode: 'internet' } } }, { type: 'merge' });
    await waitFor(Jobs, PROBE, () => true);
    await endProbe('gateway');
    const good = await waitFor(Boxes, { name: 'guarded' }, (box) => isTrue(box.status?.conditions, 'Ready'));
    expect(good.status?.networkProbe).toMatchObject({ result: 'Enforced' });
    await waitFor(Jobs, waiting, () => true);
    // The probe was a Job in the namespace, but no run.
    const runs = await server.api.list(AgentRuns, { namespace: 'bw-guarded' });
    expect(runs.items.map(({ metadata }) => metadata.name)).toEqual(['guarded-run']);
    expect(good.status?.running ?? 0).toBe(0);
  });

  it('lets a run wait for the used up budget of its Box, and starts it when the budget is raised', async () => {
    const box = { name: 'broke' };
    const inBox = (name: string) => ({ name, namespace: 'bw-broke' });
    await create(Workspaces, { name: 'broke' }, { slots: 1 });
    const egress = { requireEnforcement: false };
    const budget = [{ per: 'day', tokens: 20_000 }];
    await create(Boxes, box, { workspace: 'broke', engine: 'scripted', egress, budget });
    await waitFor(Boxes, box, ({ status }) => isTrue(status?.conditions, 'Ready'));
    await create(Agents, inBox('dora'), { name: 'Dora' });
    await waitFor(Agents, inBox('dora'), ({ status }) => status?.active === true);

    await create(AgentRuns, inBox('spends'), { agent: 'dora', message: 'hello' });
    await waitFor(Jobs, inBox('spends'), () => true);
    const claim = claimBy({ metadata: { uid: 'uid-pod', name: 'spends-pod' } } as Pod);
    const status = (change: object) =>
      server.api.patch(AgentRuns, inBox('spends'), { status: change }, { type: 'merge', subresource: 'status' });
    await status(claim);
    await status(finish(19_999));

    await create(AgentRuns, inBox('waits'), { agent: 'dora', message: 'hello' });
    const waiting = await waitFor(AgentRuns, inBox('waits'), (run) => run.status?.reason === 'WaitingForBudget');
    expect(waiting.status).toMatchObject({
      phase: 'running',
      message: expect.stringContaining('Nothing is left of the budget of Box broke (20000 tokens a day)'),
    });
    expect(waiting.status?.message).toContain('Next: raise spec.budget of Box broke, or wait.');
    expect(await read(Jobs, inBox('waits'))).toBeUndefined();

    await server.api.patch(Boxes, box, { spec: { budget: [{ per: 'day', tokens: 100_000 }] } }, { type: 'merge' });
    await waitFor(Jobs, inBox('waits'), () => true);
  });

  it('goes on when the leader stops: the other takes over, and a run in the middle ends right', async () => {
    await createRun('handed-over');
    const pod = await playPod(await waitForJob('handed-over'), { phase: 'Running' });
    await playGateway('handed-over', claimBy(pod));
    const [first] = replicas.splice(0, 1);
    await first?.stop();
    await waitFor(Leases, { namespace: RELEASE, name: 'boxwright-controller' }, ({ spec }) => {
      return spec?.holderIdentity === 'controller-1';
    });
    await playGateway('handed-over', finish(1));
    await waitFor(Jobs, ofRun('handed-over'), ({ spec }) => spec.ttlSecondsAfterFinished === 600);
    await createRun('after');
    await waitForJob('after');
    // The verdict about a network is in the status of its Box: the new leader does not probe again.
    const { status } = await server.api.get(Boxes, { name: 'guarded' });
    expect(isTrue(status?.conditions, 'NetworkEnforced')).toBe(true);
    expect(await read(Jobs, PROBE)).toBeUndefined();
  });

  it('takes the UIDs of removed runs out of the owners again', async () => {
    await eventually(async () => {
      // The watch moves on with events; on a quiet cluster with the API server's bookmarks.
      await server.api.patch(
        AgentRuns,
        ofRun('after'),
        { metadata: { annotations: { touched: String(Date.now()) } } },
        { type: 'merge' },
      );
      const owners = [
        await server.api.get(Agents, ofRun('ada')),
        await server.api.get(Boxes, { name: 'runs' }),
        await server.api.get(Workspaces, { name: WORKSPACE }),
      ];
      return owners.every(({ status }) => (status?.folding ?? []).length === 0);
    }, 'UIDs are still in folding');
  });

  it('logged no error', () => {
    expect(errors).toEqual([]);
  });
});
