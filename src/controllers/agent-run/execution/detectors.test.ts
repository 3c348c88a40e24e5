/** Every way to hang that lies with the cluster has a detector: on whole runs, driven by the clock. */
import { Agents } from '../../../api/v1alpha1/agent.js';
import { AgentRuns } from '../../../api/v1alpha1/agent-run.js';
import type { AgentRun } from '../../../api/v1alpha1/agent-run.js';
import { Events, Jobs, Namespaces, Nodes, PersistentVolumeClaims, Pods } from '../../../kube/core-types.js';
import type { KubeNode, PersistentVolumeClaim, Pod } from '../../../kube/core-types.js';
import { LABEL_AGENT, LABEL_MANAGED_BY, LABEL_RUN, MANAGED_BY } from '../../../api/labels.js';
import { NAMESPACE, makeAgent, makeBox, makePod, makeRun, scheduled } from '../../../../test/builders/run-objects.js';
import { RunWorld } from '../../../../test/builders/run-world.js';
import { apiError } from '../../../../test/builders/recording-api.js';

const REF = { namespace: NAMESPACE, name: 'ada-1' };

function node(ready: 'True' | 'False' | 'Unknown', message = '', since = '2026-01-01T00:00:00Z'): KubeNode {
  const condition = { type: 'Ready', status: ready, message, lastTransitionTime: since };
  return { apiVersion: 'v1', kind: 'Node', metadata: { name: 'node-1' }, status: { conditions: [condition] } };
}

function onNode(pod: Pod): Pod {
  return { ...pod, spec: { nodeName: 'node-1' } };
}

function warn(world: RunWorld, uid: string, reason: string, message: string, lastTimestamp = '2026-01-01T00:00:09Z') {
  world.api.seed(Events, {
    apiVersion: 'v1',
    kind: 'Event',
    metadata: { name: `${uid}-${reason}`, namespace: NAMESPACE },
    involvedObject: { kind: 'Pod', name: uid, uid },
    type: 'Warning',
    reason,
    message,
    lastTimestamp,
  });
}

async function started(box = makeBox()): Promise<RunWorld> {
  const world = new RunWorld({ box });
  world.api.seed(Nodes, node('True'));
  world.api.seed(AgentRuns, makeRun());
  await world.settle();
  world.writes();
  return world;
}

const jobUid = (world: RunWorld) => world.api.peek(Jobs, `${NAMESPACE}/ada-1`)?.metadata.uid ?? '';
const outcome = (world: RunWorld): Partial<NonNullable<AgentRun['status']>> => world.run().status ?? {};

describe('a pod that is not created', () => {
  it('because of the quota: back to the queue after 10 s, with the words of Kubernetes', async () => {
    const world = await started();
    warn(world, jobUid(world), 'FailedCreate', 'pods "ada-1-x" is forbidden: exceeded quota: boxwright, used: pods=50');
    await world.pass(9);
    expect(world.api.reads).toEqual([]);
    await world.pass(1);
    expect(world.writes()).toEqual(['patch agentruns/status ada-1', 'delete jobs ada-1']);
    expect(outcome(world)).toMatchObject({
      phase: 'running',
      reason: 'NoCapacity',
      message: expect.stringContaining('exceeded quota: boxwright, used: pods=50.'),
    });
    expect(world.ended).toEqual(['returned']);
    expect(world.api.reads).toHaveLength(1);
  });

  it('for another reason: asked twice in all, and the bound names it', async () => {
    const world = await started();
    await world.pass(15);
    warn(world, jobUid(world), 'FailedCreate', 'pods "ada-1-x" is forbidden: violates PodSecurity');
    for (let i = 0; i < 20; i++) await world.pass(5);
    expect(world.api.reads).toHaveLength(1);
    await world.pass(5);
    expect(outcome(world).message).toContain(
      'within 120 s. FailedCreate: pods "ada-1-x" is forbidden: violates PodSecurity.',
    );
    expect(world.api.reads).toHaveLength(2);
  });

  it('for another cause than before: the status tells the new one', async () => {
    const world = await started();
    await world.pass(120);
    expect(outcome(world).message).toContain('Kubernetes created no pod within 120 s.');
    await world.pass(31);
    warn(world, jobUid(world), 'FailedCreate', 'pods "ada-1-y" is forbidden: exceeded quota: boxwright');
    await world.pass(10);
    expect(outcome(world).message).toContain('exceeded quota: boxwright.');
  });

  it('is found without the right to read events too', async () => {
    const world = await started();
    world.api.failNext({ verb: 'list', resource: 'events', error: apiError(403, 'Forbidden'), times: 9 });
    await world.pass(10);
    await world.pass(110);
    expect(outcome(world).reason).toBe('NoCapacity');
  });
});

describe('a node', () => {
  it.each(['Unknown', 'False'] as const)('that is not ready (%s) ends a run that had not begun', async (ready) => {
    const world = await started();
    world.api.seed(Pods, onNode(makePod({ ...scheduled() })));
    world.api.seed(Nodes, node(ready, 'Kubelet stopped posting node status.', '2026-01-01T00:00:30Z'));
    await world.settle();
    await world.pass(119);
    expect(outcome(world).phase).toBe('running');
    await world.pass(1);
    expect(outcome(world)).toMatchObject({
      phase: 'error',
      reason: 'NodeLost',
      message:
        'Node node-1 is not ready (Kubelet stopped posting node status.); the run had not begun. Continue its session, or start a new run.',
    });
    expect(world.ended).toEqual(['NodeLost']);
  });

  it('that is not ready leaves a working run to its heartbeats', async () => {
    const world = await started();
    world.api.seed(Pods, onNode(makePod({ phase: 'Running', ...scheduled() })));
    await world.claim();
    world.api.seed(Nodes, node('Unknown'));
    await world.pass(600);
    expect(outcome(world).phase).toBe('running');
  });

  it('that is not ready and has to delete the pod ends the run at once when the time of the deletion has come', async () => {
    const world = await started();
    await world.claim();
    world.api.seed(Nodes, node('Unknown', 'no news'));
    const pod = makePod({ phase: 'Running', ...scheduled() }, { deletionTimestamp: '2026-01-01T00:01:00Z' });
    world.api.seed(Pods, onNode(pod));
    await world.settle();
    await world.pass(59);
    expect(outcome(world).phase).toBe('running');
    await world.pass(1);
    expect(outcome(world)).toMatchObject({
      reason: 'NodeLost',
      message: expect.stringContaining('The pod was deleted, and node node-1 is not ready (no news).'),
    });
  });

  it('that is gone ends its runs, working ones too, after a live read', async () => {
    const world = await started();
    world.api.seed(Pods, onNode(makePod({ phase: 'Running', ...scheduled() })));
    await world.claim();
    await world.settle();
    world.api.vanish(Nodes, 'node-1');
    await world.settle();
    await world.pass(29);
    expect(world.api.reads).toEqual([]);
    await world.pass(1);
    expect(world.api.reads).toMatchObject([{ verb: 'get', key: 'node-1' }]);
    expect(outcome(world)).toMatchObject({
      reason: 'NodeLost',
      message: expect.stringContaining('Node node-1 is not in the cluster any more.'),
    });
  });
});

describe('a pod that its node cannot start', () => {
  const sandbox = (status: 'True' | 'False') => ({
    conditions: [...scheduled().conditions, { type: 'PodReadyToStartContainers', status }],
    containerStatuses: [{ name: 'runner', state: { waiting: { reason: 'ContainerCreating' } } }],
  });

  it('for want of a sandbox: after 120 s, with the latest warning of the node', async () => {
    const world = await started();
    world.api.seed(Pods, onNode(makePod(sandbox('False'))));
    warn(world, 'uid-pod', 'FailedMount', 'older', '2026-01-01T00:00:09Z');
    warn(world, 'uid-pod', 'FailedCreatePodSandBox', 'no runtime for "gvisor" is configured', '2026-01-01T00:01:00Z');
    await world.pass(121);
    expect(outcome(world).phase).toBe('running');
    await world.pass(1);
    expect(outcome(world)).toMatchObject({
      phase: 'error',
      reason: 'ContainerCreateFailed',
      message: expect.stringMatching(
        /^no sandbox: the node could not prepare network, runtime or volumes of the pod\. .*Kubernetes says: FailedCreatePodSandBox: no runtime for "gvisor" is configured\.$/,
      ),
    });
  });

  it('although the sandbox is there: the bounds of pulling and creating together', async () => {
    const world = await started();
    world.api.seed(Pods, onNode(makePod(sandbox('True'))));
    await world.pass(420);
    expect(outcome(world).phase).toBe('running');
    await world.pass(2);
    expect(outcome(world).reason).toBe('ContainerCreateFailed');
  });
});

describe('a namespace that is being deleted', () => {
  const terminate = (world: RunWorld) =>
    world.api.seed(Namespaces, {
      apiVersion: 'v1',
      kind: 'Namespace',
      metadata: {
        name: NAMESPACE,
        labels: { [LABEL_MANAGED_BY]: MANAGED_BY },
        deletionTimestamp: '2026-01-01T00:00:01Z',
        finalizers: ['kubernetes'],
      },
    });

  it.each([
    ['that waits', async () => undefined],
    ['that the namespace controller deletes', (world: RunWorld) => world.api.delete(AgentRuns, REF)],
  ])('ends a run %s as NamespaceTerminating', async (_what, change) => {
    const world = new RunWorld({ box: { ...makeBox(), status: {} } });
    world.api.seed(AgentRuns, makeRun('ada-1', { metadata: { finalizers: ['boxwright.dev/fold', 'keep'] } }));
    await world.settle();
    terminate(world);
    await change(world);
    await world.settle();
    expect(outcome(world)).toMatchObject({ phase: 'error', reason: 'NamespaceTerminating' });
  });

  it('ends a run whose pod went with it as NamespaceTerminating', async () => {
    const world = await started();
    world.api.seed(Pods, makePod({ phase: 'Running', ...scheduled() }));
    await world.claim();
    await world.settle();
    terminate(world);
    world.api.vanish(Pods, `${NAMESPACE}/ada-1-abcde`);
    await world.settle();
    await world.pass(15);
    expect(outcome(world).reason).toBe('NamespaceTerminating');
  });
});

describe('a Job that Kueue holds', () => {
  const KUEUE = makeBox({ kueueQueueName: 'agents' });
  const setSuspended = async (world: RunWorld, suspend: boolean) => {
    const lastTransitionTime = new Date(world.clock.now()).toISOString();
    const status = { conditions: [{ type: 'Suspended', status: suspend ? 'True' : 'False', lastTransitionTime }] };
    await world.api.patch(Jobs, REF, { status }, { type: 'merge', subresource: 'status' });
    await world.api.patch(Jobs, REF, { spec: { suspend } }, { type: 'merge' });
  };

  it('is created suspended for the queue, and its bounds pause: the run says what it waits for', async () => {
    const world = await started(KUEUE);
    const job = world.api.peek(Jobs, `${NAMESPACE}/ada-1`);
    expect(job?.spec.suspend).toBe(true);
    expect(job?.metadata.labels).toMatchObject({ 'kueue.x-k8s.io/queue-name': 'agents' });
    await world.pass(10);
    expect(world.writes()).toEqual(['patch agentruns/status ada-1']);
    expect(outcome(world)).toMatchObject({ phase: 'running', reason: 'WaitingForKueue' });
    for (let i = 0; i < 100; i++) await world.pass(600);
    expect(world.writes()).toEqual([]);
    expect(world.api.reads).toEqual([]);
  });

  it('has the whole bound for its pod from the moment when Kueue starts it', async () => {
    const world = await started(KUEUE);
    await world.pass(7200);
    await setSuspended(world, false);
    await world.settle();
    await world.pass(119);
    expect(outcome(world).phase).toBe('running');
    expect(outcome(world).reason).toBe('Starting');
    await world.pass(1);
    expect(outcome(world).reason).toBe('NoCapacity');
  });

  it('ends the working run as Evicted when Kueue takes its place away', async () => {
    const world = await started(KUEUE);
    await setSuspended(world, false);
    world.api.seed(Pods, makePod({ phase: 'Running', ...scheduled() }));
    await world.claim();
    await world.settle();
    await setSuspended(world, true);
    world.api.vanish(Pods, `${NAMESPACE}/ada-1-abcde`);
    await world.settle();
    await world.pass(15);
    expect(outcome(world)).toMatchObject({ reason: 'Evicted', message: expect.stringContaining('Kueue') });
  });
});

describe('a run that waits for long', () => {
  it('goes on waiting; the metric tells how long, and the log from the second day on, once an hour', async () => {
    const world = new RunWorld({ box: makeBox({ paused: true }) });
    world.api.seed(AgentRuns, makeRun());
    await world.settle();
    world.writes();
    for (let hour = 0; hour < 24; hour++) await world.pass(3600);
    expect(world.oldestWaitingSeconds).toBe(86_400);
    expect(world.logged.messages()).toEqual([]);
    for (let minute = 0; minute < 90; minute++) await world.pass(60);
    const warning = 'warn a run waits for more than a day; its status says why';
    expect(world.logged.messages()).toEqual([warning, warning]);
    expect(world.writes()).toEqual([]);
    await world.api.patch(AgentRuns, REF, { spec: { cancelRequested: true } }, { type: 'merge' });
    await world.settle();
    await world.pass(60);
    expect(world.oldestWaitingSeconds).toBe(0);
  });
});

describe('the bound on the end of a cancelled run', () => {
  it('survives a change of the leader: the status says since when', async () => {
    const world = await started();
    world.api.seed(Pods, makePod({ phase: 'Running', ...scheduled() }));
    await world.claim();
    await world.api.patch(AgentRuns, REF, { spec: { cancelRequested: true } }, { type: 'merge' });
    await world.settle();
    world.writes();
    await world.pass(5);
    expect(world.writes()).toEqual(['patch agentruns/status ada-1']);
    await world.pass(40);
    expect(world.writes()).toEqual([]);
    const next = new RunWorld({ takesOverFrom: world });
    // A leader looks at every object when it begins.
    await world.api.patch(AgentRuns, REF, { metadata: { annotations: { seen: 'again' } } }, { type: 'merge' });
    await next.settle();
    await next.pass(19);
    expect(outcome(world).phase).toBe('running');
    await next.pass(1);
    expect(outcome(world)).toMatchObject({ phase: 'cancelled', reason: 'Cancelled' });
  });

  it('costs no write when the runner stops within 5 s', async () => {
    const world = await started();
    world.api.seed(Pods, makePod({ phase: 'Running', ...scheduled() }));
    await world.claim();
    await world.api.patch(AgentRuns, REF, { spec: { cancelRequested: true } }, { type: 'merge' });
    world.writes();
    await world.pass(4);
    await world.finish('ada-1', 'cancelled', 'Cancelled');
    await world.settle();
    expect(world.writes()).toEqual(['patch jobs ada-1']);
    expect(world.ended).toEqual(['Cancelled']);
  });
});

test('a pod gets users of its own where every node has them', async () => {
  const world = new RunWorld();
  const capable = node('True');
  capable.status = { ...capable.status, runtimeHandlers: [{ name: '', features: { userNamespaces: true } }] };
  world.api.seed(Nodes, capable);
  world.api.seed(AgentRuns, makeRun());
  await world.settle();
  expect(world.api.peek(Jobs, `${NAMESPACE}/ada-1`)?.spec.template.spec['hostUsers']).toBe(false);
});

describe('the volume of an agent', () => {
  const persistent = () => makeBox({ workspaceVolume: { mode: 'persistent', storageClassName: 'fast' } });
  const claim = (status: PersistentVolumeClaim['status'] = {}, ownerUid = 'uid-agent-ada'): PersistentVolumeClaim => ({
    apiVersion: 'v1',
    kind: 'PersistentVolumeClaim',
    metadata: {
      name: 'ada-workspace',
      namespace: NAMESPACE,
      labels: { [LABEL_MANAGED_BY]: MANAGED_BY, [LABEL_AGENT]: 'ada' },
      ownerReferences: [
        { apiVersion: 'boxwright.dev/v1alpha1', kind: 'Agent', name: 'ada', uid: ownerUid, controller: true },
      ],
    },
    spec: {},
    status,
  });
  const stuckPod = (message: string) =>
    makePod(
      { conditions: [{ type: 'PodScheduled', status: 'False', reason: 'Unschedulable', message }] },
      { labels: { [LABEL_RUN]: 'ada-1', [LABEL_AGENT]: 'ada' } },
    );
  const volumesOf = (world: RunWorld) =>
    world.api.peek(Jobs, `${NAMESPACE}/ada-1`)?.spec.template.spec['volumes'] as { name: string }[];

  it('that is not there keeps its runs waiting, and nobody else; they start when it is', async () => {
    const world = await started(persistent());
    expect(outcome(world)).toMatchObject({
      phase: 'running',
      reason: 'WorkspaceNotReady',
      message: expect.stringContaining('condition WorkspacePersistent (kubectl describe agent)'),
    });
    expect(world.api.all(Jobs)).toEqual([]);

    world.api.seed(PersistentVolumeClaims, claim({ phase: 'Pending' }));
    await world.settle();
    expect(volumesOf(world)).toContainEqual({
      name: 'workspace',
      persistentVolumeClaim: { claimName: 'ada-workspace' },
    });
  });

  it('of another agent of that name is never used', async () => {
    const world = await started(persistent());
    world.api.seed(PersistentVolumeClaims, claim({ phase: 'Bound' }, 'uid-of-another'));
    await world.pass(60);
    expect(outcome(world).reason).toBe('WorkspaceNotReady');
  });

  it('is not waited for where files need not stay', async () => {
    const world = await started(makeBox({ workspaceVolume: { mode: 'auto' } }));
    expect(volumesOf(world)).toContainEqual({ name: 'workspace', emptyDir: { sizeLimit: '2Gi' } });
  });

  it('that no node can reach is named by the bound', async () => {
    const world = new RunWorld({ box: persistent() });
    world.api.seed(PersistentVolumeClaims, claim({ phase: 'Pending' }));
    world.api.seed(AgentRuns, makeRun());
    await world.settle();
    world.api.seed(
      Pods,
      stuckPod('0/1 nodes are available: 1 node(s) did not find available persistent volumes to bind.'),
    );
    await world.settle();
    await world.pass(901);
    expect(outcome(world)).toMatchObject({
      reason: 'NoCapacity',
      message: expect.stringContaining(
        'persistent volumes to bind. Volume claim ada-workspace has no volume: kubectl describe pvc ada-workspace -n bw-dev tells why.',
      ),
    });
  });

  it.each([
    ['its volume is in the way', '0/2 nodes are available: 2 node(s) had volume node affinity conflict.', 1],
    ['its node is full', '0/2 nodes are available: 1 Insufficient cpu, 1 node(s) did not match pod affinity rules.', 1],
    ['the cluster is full', '0/2 nodes are available: 2 Insufficient cpu.', 0],
  ])('holds back its agent alone, and a full cluster the Box: %s', async (_name, message, started) => {
    const world = new RunWorld({ box: makeBox() });
    world.api.seed(Agents, makeAgent({}, 'bob'));
    world.api.seed(AgentRuns, makeRun());
    await world.settle();
    world.api.seed(Pods, stuckPod(message));
    world.api.seed(AgentRuns, makeRun('ada-2'));
    world.api.seed(AgentRuns, makeRun('bob-1', { spec: { agent: 'bob', agentUid: 'uid-agent-bob' } }));
    await world.settle();
    const jobs = world.api.all(Jobs).map(({ metadata }) => metadata.name);
    expect(jobs).toEqual(['ada-1', ...(started === 1 ? ['bob-1'] : [])]);
    expect(world.run('ada-2').status?.reason).toBe('NoCapacity');
  });
});
