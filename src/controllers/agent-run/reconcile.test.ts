import { LABEL_RUN } from '../../api/labels.js';
import { AgentRuns } from '../../api/v1alpha1/agent-run.js';
import { Agents } from '../../api/v1alpha1/agent.js';
import { Boxes } from '../../api/v1alpha1/box.js';
import { Workspaces } from '../../api/v1alpha1/workspace.js';
import type { ResourceType } from '../../api/meta.js';
import { Events, Jobs, Pods } from '../../kube/core-types.js';
import { KubeConnectionError } from '../../kube/errors.js';
import type { ObjectRef } from '../../kube/types.js';
import { findCondition } from '../../api/conditions.js';
import {
  NAMESPACE,
  makeAgent,
  makeBox,
  makeJob,
  makeManifestRun,
  makePod,
  makeRun,
  scheduled,
} from '../../../test/builders/run-objects.js';
import { RunWorld } from '../../../test/builders/run-world.js';
import { apiError } from '../../../test/builders/recording-api.js';

const KEY = `${NAMESPACE}/ada-1`;
const REF = { namespace: NAMESPACE, name: 'ada-1' };

/** A run with a Job and a running, claimed pod. */
async function working(world: RunWorld): Promise<void> {
  world.api.seed(AgentRuns, makeRun());
  await world.settle();
  world.api.seed(Pods, makePod({ phase: 'Running', ...scheduled() }, { labels: { [LABEL_RUN]: 'ada-1' } }));
  await world.claim();
  await world.settle();
  world.writes();
}

describe('a short run of the API', () => {
  it('costs the controller two writes and no read: the Job, and its TTL after the outcome', async () => {
    const world = new RunWorld();
    world.api.seed(AgentRuns, makeRun());
    await world.settle();
    expect(world.writes()).toEqual(['create jobs ada-1']);
    world.api.seed(Pods, makePod({ phase: 'Running', ...scheduled() }));
    await world.claim();
    await world.settle();
    await world.finish();
    await world.settle();
    expect(world.writes()).toEqual(['patch jobs ada-1']);
    expect(world.api.peek(Jobs, KEY)?.spec.ttlSecondsAfterFinished).toBe(600);
    const { namespace, name } = REF;
    await world.api.patch(
      Jobs,
      { namespace, name },
      { status: { conditions: [{ type: 'Complete', status: 'True' }] } },
      { type: 'merge', subresource: 'status' },
    );
    world.writes();
    await world.pass(120);
    expect(world.writes()).toEqual([]);
    expect(world.api.reads).toEqual([]);
  });

  it('has its Job deleted when the pod does not end after the outcome', async () => {
    const world = new RunWorld();
    await working(world);
    await world.finish();
    await world.settle();
    expect(world.writes()).toEqual(['patch jobs ada-1']);
    await world.pass(59);
    expect(world.writes()).toEqual([]);
    await world.pass(1);
    expect(world.writes()).toEqual(['delete jobs ada-1']);
  });
});

describe('a look while the cache does not show the own write yet', () => {
  /** Looks at a run again before the watch has told of the write of the first look, and once more afterwards. */
  async function looks(world: RunWorld, name: string): Promise<string[]> {
    const tell = world.api.delayWatch(AgentRuns);
    const { signal } = new AbortController();
    const look = () => world.controllers.runs.reconcile(`${NAMESPACE}/${name}`, signal);
    await look();
    expect(await look()).toEqual({ requeueAfterMs: 2_000 });
    tell();
    await world.settle();
    return world.writes();
  }

  it('does not say again why the run waits', async () => {
    const world = new RunWorld({ box: makeBox({ maxRunning: 1 }) });
    await working(world);
    world.api.seed(AgentRuns, makeRun('ada-2'));
    expect(await looks(world, 'ada-2')).toEqual(['patch agentruns/status ada-2']);
  });

  it('does not end the run again', async () => {
    const world = new RunWorld({ box: makeBox({ maxRunning: 1 }) });
    await working(world);
    world.api.seed(AgentRuns, makeRun('ada-2', { spec: { cancelRequested: true } }));
    expect(await looks(world, 'ada-2')).toEqual(['patch agentruns/status ada-2']);
    expect(world.run('ada-2').status?.phase).toBe('cancelled');
  });
});

/** A world with a run whose first Jobs the API server refuses. */
function worldWithRefusal(error: Error, { run = makeRun(), times = 1 } = {}): RunWorld {
  const world = new RunWorld();
  world.api.failNext({ verb: 'create', resource: 'jobs', error, times });
  world.api.seed(AgentRuns, run);
  return world;
}

describe('a run made by a five-line manifest', () => {
  it('gets the finalizer and the UID of its agent before the Job', async () => {
    const world = new RunWorld();
    world.api.seed(AgentRuns, makeManifestRun());
    await world.settle();
    expect(world.writes()).toEqual([
      'patch agentruns by-hand',
      'patch agentruns/status by-hand',
      'create jobs by-hand',
    ]);
    expect(world.run('by-hand').metadata.finalizers).toEqual(['boxwright.dev/fold']);
    expect(world.run('by-hand').status?.agentUid).toBe('uid-agent-ada');
  });

  it('says why Kubernetes refused its Job, in one write more', async () => {
    const text = 'admission webhook "policy.example.com" denied the request: no tools here';
    const world = worldWithRefusal(apiError(403, 'Forbidden', text), { run: makeManifestRun() });
    await world.settle();
    expect(world.writes()).toEqual([
      'patch agentruns by-hand',
      'patch agentruns/status by-hand',
      'create jobs by-hand',
      'patch agentruns/status by-hand',
    ]);
    expect(world.run('by-hand').status?.message).toContain('no tools here');
  });

  it('ends as AgentNotFound without its agent, after one live read', async () => {
    const world = new RunWorld({ agent: null });
    world.api.seed(AgentRuns, makeManifestRun());
    await world.settle();
    expect(world.writes()).toEqual(['patch agentruns/status by-hand']);
    expect(world.run('by-hand').status).toMatchObject({
      phase: 'error',
      reason: 'AgentNotFound',
      message: expect.stringContaining('There is no Agent ada in namespace bw-dev.'),
      usageFinal: true,
    });
    expect(world.api.reads.map(({ verb, key }) => `${verb} ${key}`)).toEqual(['get bw-dev/ada']);
  });
});

describe('a run that may not start', () => {
  it.each([
    ['AgentInactive', { ...makeAgent(), status: { active: false } }, makeBox()],
    ['AgentPaused', makeAgent({ paused: true }), makeBox()],
    ['BoxPaused', makeAgent(), makeBox({ paused: true })],
    ['BoxNotReady', makeAgent(), { ...makeBox(), status: {} }],
  ])('waits as %s with one write and no Job', async (reason, agent, box) => {
    const world = new RunWorld({ agent, box });
    world.api.seed(AgentRuns, makeRun());
    await world.settle();
    await world.pass(300);
    expect(world.writes()).toEqual(['patch agentruns/status ada-1']);
    expect(world.run().status).toMatchObject({ phase: 'running', reason });
  });

  it.each<[string, ResourceType, ObjectRef, string]>([
    ['its Box', Boxes, { name: 'dev' }, 'BoxPaused'],
    ['its Workspace', Workspaces, { name: 'acme' }, 'WorkspacePaused'],
  ])('says that %s is paused, and starts when it is not any more', async (_what, type, ref, reason) => {
    const world = new RunWorld({ box: makeBox({ maxRunning: 1 }) });
    const pause = async (paused: boolean) => {
      await world.api.patch(type, ref, { spec: { paused } }, { type: 'merge' });
      await world.settle();
    };
    world.api.seed(AgentRuns, makeRun('ada-1'));
    await world.settle();
    world.api.seed(AgentRuns, makeRun('ada-2', { spec: { createdAt: '2026-01-01T00:00:01.000Z' } }));
    await world.settle();
    expect(world.run('ada-2').status?.reason).toBe('BoxLimit');
    await pause(true);
    expect(world.run('ada-2').status?.reason).toBe(reason);
    await world.finish('ada-1');
    world.writes();
    await world.pass(30);
    expect(world.writes()).not.toContain('create jobs ada-2');
    await pause(false);
    await world.settle();
    expect(world.writes()).toContain('create jobs ada-2');
  });

  it('starts when its agent gets a slot', async () => {
    const world = new RunWorld({ agent: { ...makeAgent(), status: { active: false } } });
    world.api.seed(AgentRuns, makeRun());
    await world.settle();
    world.writes();
    const ref = { namespace: NAMESPACE, name: 'ada' };
    await world.api.patch(Agents, ref, { status: { active: true } }, { type: 'merge', subresource: 'status' });
    world.writes();
    await world.settle();
    expect(world.writes()).toEqual(['create jobs ada-1']);
  });

  it('starts when a run before it ends, the oldest first', async () => {
    const world = new RunWorld({ box: makeBox({ maxRunning: 1 }) });
    for (const [name, second] of [
      ['ada-1', 0],
      ['ada-3', 2],
      ['ada-2', 1],
    ] as const) {
      world.api.seed(AgentRuns, makeRun(name, { spec: { createdAt: `2026-01-01T00:00:0${second}.000Z` } }));
    }
    await world.settle();
    expect(world.writes().sort()).toEqual([
      'create jobs ada-1',
      'patch agentruns/status ada-2',
      'patch agentruns/status ada-3',
    ]);
    expect(world.run('ada-3').status?.reason).toBe('BoxLimit');
    await world.finish('ada-1');
    await world.settle();
    expect(world.writes()).toEqual(expect.arrayContaining(['create jobs ada-2']));
    expect(world.api.all(Jobs).map(({ metadata }) => metadata.name)).toEqual(['ada-1', 'ada-2']);
  });

  it('starts whatever the limits say once the run that called its agent waits for it', async () => {
    const world = new RunWorld({ box: makeBox({ maxRunning: 1 }) });
    await working(world);
    const parent = { name: 'ada-1', uid: world.run().metadata.uid ?? '', depth: 1, agents: ['ada'], waits: false };
    world.api.seed(AgentRuns, makeRun('ada-2', { spec: { parent } }));
    await world.settle();
    expect(world.run('ada-2').status?.reason).toBe('BoxLimit');
    await world.api.patch(
      AgentRuns,
      { namespace: NAMESPACE, name: 'ada-2' },
      { status: { awaited: true } },
      { type: 'merge', subresource: 'status' },
    );
    await world.settle();
    expect(world.api.peek(Jobs, `${NAMESPACE}/ada-2`)).toBeDefined();
  });

  it('waits as SessionBusy, then continues the transcript of the run before it', async () => {
    const world = new RunWorld();
    world.api.seed(AgentRuns, makeRun('ada-1', { spec: { sessionId: 's' } }));
    await world.settle();
    world.api.seed(AgentRuns, makeRun('ada-2', { spec: { sessionId: 's', createdAt: '2026-01-01T00:00:01.000Z' } }));
    await world.settle();
    expect(world.run('ada-2').status?.reason).toBe('SessionBusy');
    await world.claim('ada-1');
    await world.finish('ada-1');
    await world.settle();
    expect(world.api.peek(Jobs, `${NAMESPACE}/ada-2`)?.metadata.annotations).toEqual({
      'boxwright.dev/previous-run': 'ada-1',
    });
  });

  it('is written as Queued once, whatever limits it meets in turn', async () => {
    const world = new RunWorld({ box: makeBox({ maxRunning: 1 }) });
    const { signal } = new AbortController();
    const names = Array.from({ length: 9 }, (_, number) => `ada-${number + 1}`);
    for (const [number, name] of names.entries()) {
      const createdAt = new Date(Date.parse('2026-01-01T00:00:00.000Z') + number).toISOString();
      // Three sessions of three runs each.
      world.api.seed(AgentRuns, makeRun(name, { spec: { sessionId: `s${number % 3}`, createdAt } }));
    }
    await world.settle();
    for (const name of names) {
      await world.claim(name, `uid-${name}`);
      await world.finish(name);
      await world.settle();
      // As a resync does, or the event of an own write that comes late.
      for (const waiting of names) await world.controllers.runs.reconcile(`${NAMESPACE}/${waiting}`, signal);
      await world.settle();
    }
    const written = world.writes().filter((write) => write.startsWith('patch agentruns/status'));
    expect(written.sort()).toEqual(names.slice(1).map((name) => `patch agentruns/status ${name}`));
    expect(names.map((name) => world.run(name).status?.reason)).toEqual(names.map(() => 'Completed'));
  });

  it('says another limit when that one has stood for a minute', async () => {
    const world = new RunWorld({ box: makeBox({ maxRunning: 1 }) });
    const runOf = (name: string, sessionId: string, second: number) =>
      makeRun(name, { spec: { sessionId, createdAt: `2026-01-01T00:00:0${second}.000Z` } });
    world.api.seed(AgentRuns, runOf('ada-1', 's', 1));
    await world.settle();
    world.api.seed(AgentRuns, runOf('ada-2', 't', 2));
    world.api.seed(AgentRuns, runOf('ada-3', 's', 3));
    await world.settle();
    expect(world.run('ada-3').status?.reason).toBe('SessionBusy');
    await world.claim('ada-1');
    await world.finish('ada-1');
    await world.settle();
    world.writes();
    const look = () => world.controllers.runs.reconcile(`${NAMESPACE}/ada-3`, new AbortController().signal);
    expect(await look()).toEqual({ requeueAfterMs: 60_000 });
    await world.clock.advance(59_000);
    expect(await look()).toEqual({ requeueAfterMs: 1_000 });
    expect(world.writes()).toEqual([]);
    await world.clock.advance(1_000);
    await look();
    expect(world.writes()).toEqual(['patch agentruns/status ada-3']);
    expect(world.run('ada-3').status?.reason).toBe('BoxLimit');
  });

  it('is shown as Starting when its pod takes longer than 30 s, with one more write', async () => {
    const world = new RunWorld({ agent: { ...makeAgent(), status: { active: false } } });
    world.api.seed(AgentRuns, makeRun());
    await world.settle();
    const ref = { namespace: NAMESPACE, name: 'ada' };
    await world.api.patch(Agents, ref, { status: { active: true } }, { type: 'merge', subresource: 'status' });
    await world.settle();
    world.writes();
    await world.pass(29);
    expect(world.writes()).toEqual([]);
    await world.pass(1);
    await world.pass(60);
    expect(world.writes()).toEqual(['patch agentruns/status ada-1']);
    expect(world.run().status).toMatchObject({ phase: 'running', reason: 'Starting' });
  });

  it('is cancelled without a Job', async () => {
    const world = new RunWorld({ agent: makeAgent({ paused: true }) });
    world.api.seed(AgentRuns, makeRun());
    await world.settle();
    world.writes();
    await world.api.patch(AgentRuns, REF, { spec: { cancelRequested: true } }, { type: 'merge' });
    world.writes();
    await world.settle();
    expect(world.writes()).toEqual(['patch agentruns/status ada-1']);
    expect(world.run().status).toMatchObject({ phase: 'cancelled', reason: 'Cancelled' });
  });

  it('ends as AgentDeleted when another agent has the name by now', async () => {
    const world = new RunWorld();
    world.api.seed(AgentRuns, makeRun('ada-1', { spec: { agentUid: 'uid-of-the-old-one' } }));
    await world.settle();
    expect(world.writes()).toEqual(['patch agentruns/status ada-1']);
    expect(world.run().status?.reason).toBe('AgentDeleted');
  });
});

describe('no room in the cluster', () => {
  it('takes the Job of a run without a pod away, waits, and tries again later: nothing was executed', async () => {
    const world = new RunWorld();
    world.api.seed(AgentRuns, makeRun());
    await world.settle();
    world.writes();
    await world.pass(120);
    expect(world.writes()).toEqual(['patch agentruns/status ada-1', 'delete jobs ada-1']);
    expect(world.run().status).toMatchObject({ phase: 'running', reason: 'NoCapacity' });
    await world.pass(29);
    expect(world.writes()).toEqual([]);
    await world.pass(1);
    expect(world.writes()).toEqual(['create jobs ada-1']);
  });

  it('admits nothing more in a Box with an unschedulable pod, and goes on when the pod gets a node', async () => {
    const world = new RunWorld();
    world.api.seed(AgentRuns, makeRun());
    await world.settle();
    const unschedulable = { conditions: [{ type: 'PodScheduled', status: 'False', reason: 'Unschedulable' }] };
    world.api.seed(Pods, makePod(unschedulable));
    world.api.seed(AgentRuns, makeRun('ada-2'));
    await world.settle();
    expect(world.run('ada-2').status?.reason).toBe('NoCapacity');
    world.writes();
    await world.api.patch(
      Pods,
      { namespace: NAMESPACE, name: 'ada-1-abcde' },
      { status: scheduled() },
      {
        type: 'merge',
        subresource: 'status',
      },
    );
    world.writes();
    await world.settle();
    expect(world.writes()).toEqual(['create jobs ada-2']);
  });

  it('keeps the run of a pod that claimed it in the last moment', async () => {
    const world = new RunWorld();
    world.api.seed(AgentRuns, makeRun());
    await world.settle();
    world.writes();
    world.beforeNextStatusWrite(async () => {
      world.api.seed(Pods, makePod({ phase: 'Running', ...scheduled() }));
      await world.claim();
    });
    await world.pass(120);
    expect(world.writes()).toEqual(['patch agentruns/status ada-1']);
    expect(world.run().status?.reason).not.toBe('NoCapacity');
    expect(world.run().status?.claim?.podUid).toBe('uid-pod');
  });

  it('waits when quota refuses the Job itself', async () => {
    const text = 'exceeded quota: boxwright, requested: count/jobs.batch=1';
    const world = worldWithRefusal(apiError(403, 'Forbidden', text));
    await world.settle();
    expect(world.writes()).toEqual(['create jobs ada-1', 'patch agentruns/status ada-1']);
    expect(world.run().status?.reason).toBe('NoCapacity');
    await world.pass(30);
    expect(world.writes()).toEqual(['create jobs ada-1']);
  });
});

describe('creating the Job', () => {
  it('takes a Job with our owner UID for its own after a lost answer', async () => {
    const world = new RunWorld();
    const run = world.api.seed(AgentRuns, makeRun());
    const job = makeJob(run);
    world.api.failNext({ verb: 'create', resource: 'jobs', error: apiError(409, 'AlreadyExists') });
    delete job.metadata.labels;
    world.api.seed(Jobs, job);
    await world.settle();
    await world.settle();
    expect(world.writes()).toEqual(['create jobs ada-1']);
    expect(world.run().status).toEqual({ phase: 'running' });
  });

  it.each([
    [403, 'Forbidden', 'admission webhook "policy.example.com" denied the request: no tools here'],
    [400, 'BadRequest', 'admission webhook "policy.example.com" denied the request: no tools here'],
    [400, 'BadRequest', 'no tools here'],
    [500, 'InternalError', 'admission webhook "policy.example.com" denied the request: no tools here'],
    [422, 'Invalid', "ValidatingAdmissionPolicy 'tools' with binding 'tools' denied request: no tools here"],
  ])('waits when a policy of the cluster refuses the Job with %s, says so, and tries again', async (...refusal) => {
    const world = worldWithRefusal(apiError(...refusal));
    await world.settle();
    expect(world.run().status).toMatchObject({
      phase: 'running',
      reason: 'JobRefused',
      message: expect.stringContaining('no tools here'),
    });
    expect(world.writes()).toEqual(['create jobs ada-1', 'patch agentruns/status ada-1']);
    await world.pass(30);
    expect(world.writes()).toEqual(['create jobs ada-1']);
  });

  it('keeps the words of a refusal when somebody else writes the run in that moment', async () => {
    const error = apiError(403, 'Forbidden', 'admission webhook "w" denied the request: no tools here');
    const world = worldWithRefusal(error, { times: 2 });
    world.api.failNext({ verb: 'patch', resource: 'agentruns/status', error: apiError(409, 'Conflict') });
    await world.settle();
    expect(world.run().status?.message).toContain('no tools here');
  });

  it.each([
    'jobs.batch is forbidden: User "c" cannot create resource "jobs" in API group "batch" in the namespace "bw-a"',
    'jobs.batch "ada-1" is forbidden: not yet ready to handle request',
  ])('tries again at once when an API server has not read all that it needs after its start: %s', async (text) => {
    const world = worldWithRefusal(apiError(403, 'Forbidden', text));
    await expect(world.settle()).rejects.toThrow(text);
    expect(world.run().status).toEqual({ phase: 'running' });
    await world.settle();
    expect(world.writes()).toEqual(['create jobs ada-1', 'create jobs ada-1']);
    expect(world.api.peek(Jobs, KEY)).toBeDefined();
  });

  it.each([
    [500, 'InternalError', 'Internal error occurred: failed calling webhook "w.example.com": connection refused'],
    [
      500,
      'InternalError',
      'Internal error occurred: add operation does not apply: doc is missing path: "/a": missing value',
    ],
    [403, 'Forbidden', 'jobs.batch is forbidden: User "c" cannot create resource "jobs" in the namespace "bw-a"'],
    [429, 'TooManyRequests', 'too many requests'],
  ])(
    'says so when the Job cannot be created for 10 s because of %s %s, and tries again every 30 s',
    async (...failure) => {
      const world = worldWithRefusal(apiError(...failure), { times: 4 });
      await expect(world.settle()).rejects.toThrow(failure[2]);
      await world.clock.advance(9_999);
      await expect(world.settle()).rejects.toThrow(failure[2]);
      expect(world.run().status).toEqual({ phase: 'running' });
      await world.clock.advance(1);
      await world.settle();
      const status = { phase: 'running', reason: 'JobNotCreated', message: expect.stringContaining(failure[2]) };
      expect(world.run().status).toMatchObject(status);
      world.writes();
      await world.pass(30);
      expect(world.writes()).toEqual(['create jobs ada-1']);
      expect(world.run().status).toMatchObject(status);
      await world.pass(30);
      expect(world.writes()).toEqual(['create jobs ada-1']);
      expect(world.api.peek(Jobs, KEY)).toBeDefined();
    },
  );

  it.each([
    [500, 'InternalError', 'etcdserver: request timed out'],
    [503, 'ServiceUnavailable', 'the server is currently unable to handle the request'],
  ])('blames nothing while the API server itself is away: %s %s', async (...failure) => {
    const world = worldWithRefusal(apiError(...failure), { times: 2 });
    await expect(world.settle()).rejects.toThrow(failure[2]);
    await world.clock.advance(60_000);
    await expect(world.settle()).rejects.toThrow(failure[2]);
    await world.settle();
    expect(world.api.peek(Jobs, KEY)).toBeDefined();
    expect(world.run().status).toEqual({ phase: 'running' });
  });

  it('says so, and keeps its place, when no answer comes in time while the status can be written', async () => {
    const error = new KubeConnectionError('create jobs: no answer in time', 'timeout');
    const world = worldWithRefusal(error, { times: 3 });
    await expect(world.settle()).rejects.toThrow('no answer in time');
    expect(world.run().status).toEqual({ phase: 'running' });
    await world.clock.advance(10_000);
    await expect(world.settle()).rejects.toThrow('no answer in time');
    expect(world.run().status).toMatchObject({ reason: 'JobNotCreated', message: expect.stringContaining('in time') });
    world.writes();
    await expect(world.settle()).rejects.toThrow('no answer in time');
    expect(world.controllers.counts.running(NAMESPACE)).toBe(1);
    await world.settle();
    expect(world.writes()).toEqual(['create jobs ada-1', 'create jobs ada-1']);
  });

  it('starts within seconds when an API server is back that could not even store why the run waits', async () => {
    const error = apiError(
      500,
      'InternalError',
      'Internal error occurred: failed calling webhook "w": no route to host',
    );
    const world = worldWithRefusal(error, { times: 2 });
    await expect(world.settle()).rejects.toThrow('failed calling webhook');
    world.api.failNext({ verb: 'patch', resource: 'agentruns/status', error: apiError(503, 'ServiceUnavailable') });
    await world.clock.advance(10_000);
    await expect(world.settle()).rejects.toThrow('503');
    await world.settle();
    expect(world.api.peek(Jobs, KEY)).toBeDefined();
    expect(world.run().status).toEqual({ phase: 'running' });
  });

  it('ends the run when Kubernetes finds the Job invalid', async () => {
    const world = worldWithRefusal(apiError(422, 'Invalid', 'spec.template.spec.runtimeClassName: bad'));
    await world.settle();
    expect(world.run().status).toMatchObject({
      phase: 'error',
      reason: 'InvalidRun',
      message: expect.stringContaining('runtimeClassName'),
    });
    expect(world.writes()).toEqual(['create jobs ada-1', 'patch agentruns/status ada-1']);
  });

  it('waits while the namespace of the Box is being deleted, without trying again and again', async () => {
    const world = new RunWorld();
    world.api.failNext({ verb: 'create', resource: 'jobs', error: apiError(404, 'NotFound'), times: 2 });
    world.api.seed(AgentRuns, makeRun());
    await world.settle();
    expect(world.run().status?.reason).toBe('BoxNotReady');
    expect(world.writes()).toEqual(['create jobs ada-1', 'patch agentruns/status ada-1']);
    await world.pass(29);
    expect(world.writes()).toEqual([]);
    await world.pass(1);
    expect(world.writes()).toEqual(['create jobs ada-1']);
  });

  it('waits for the garbage collector when the Job of a deleted namesake has the name', async () => {
    const world = new RunWorld();
    const old = makeJob(makeRun('ada-1', { metadata: { uid: 'uid-of-the-old-run' } }));
    world.api.seed(Jobs, old);
    world.api.seed(AgentRuns, makeRun());
    await world.settle();
    expect(world.writes()).toEqual(['create jobs ada-1']);
    world.api.vanish(Jobs, KEY);
    await world.pass(2);
    expect(world.writes()).toEqual(['create jobs ada-1']);
    expect(world.run().status).toEqual({ phase: 'running' });
  });
});

describe('a working run', () => {
  it('ends as PodDeleted when its pod is killed, after a live read, and gets no second Job', async () => {
    const world = new RunWorld();
    await working(world);
    world.api.vanish(Pods, `${NAMESPACE}/ada-1-abcde`);
    await world.settle();
    expect(world.writes()).toEqual([]);
    await world.pass(15);
    expect(world.writes()).toEqual(['patch agentruns/status ada-1', 'delete jobs ada-1']);
    expect(world.run().status).toMatchObject({ phase: 'error', reason: 'PodDeleted' });
    expect(findCondition(world.run().status?.conditions, 'Finished')).toMatchObject({ reason: 'PodDeleted' });
    await world.pass(119);
    expect(world.writes()).toEqual([]);
    // No gateway has said what it used.
    await world.pass(600);
    expect(world.writes()).toEqual(['patch agentruns/status ada-1']);
    expect(world.run().status?.usageFinal).toBe(true);
  });

  it('ends as Evicted when its pod was evicted, also when the pod is gone before anybody looks', async () => {
    const world = new RunWorld();
    await working(world);
    const conditions = [{ type: 'DisruptionTarget', status: 'True', reason: 'EvictionByEvictionAPI' }];
    const pod = { namespace: NAMESPACE, name: 'ada-1-abcde' };
    await world.api.patch(Pods, pod, { status: { conditions } }, { type: 'merge', subresource: 'status' });
    world.api.vanish(Pods, `${NAMESPACE}/ada-1-abcde`);
    await world.settle();
    await world.pass(15);
    expect(world.run().status).toMatchObject({
      phase: 'error',
      reason: 'Evicted',
      message: 'The pod was evicted, as when its node is drained. Continue its session, or start a new run.',
    });
  });

  it('is not called evicted because of another pod of its Job', async () => {
    const world = new RunWorld();
    await working(world);
    const conditions = [{ type: 'DisruptionTarget', status: 'True' as const, reason: 'EvictionByEvictionAPI' }];
    const labels = { [LABEL_RUN]: 'ada-1' };
    world.api.seed(Pods, makePod({ ...scheduled(), conditions }, { name: 'ada-1-other', uid: 'uid-other', labels }));
    world.api.vanish(Pods, `${NAMESPACE}/ada-1-other`);
    world.api.vanish(Pods, `${NAMESPACE}/ada-1-abcde`);
    await world.settle();
    await world.pass(15);
    expect(world.run().status?.reason).toBe('PodDeleted');
  });

  it('ends as JobDeleted when its Job is deleted by hand', async () => {
    const world = new RunWorld();
    await working(world);
    world.api.vanish(Jobs, KEY);
    world.api.vanish(Pods, `${NAMESPACE}/ada-1-abcde`);
    await world.settle();
    await world.pass(15);
    expect(world.writes()).toEqual(['patch agentruns/status ada-1']);
    expect(world.run().status?.reason).toBe('JobDeleted');
  });

  it('keeps the finish that arrived within the grace', async () => {
    const world = new RunWorld();
    await working(world);
    world.api.vanish(Pods, `${NAMESPACE}/ada-1-abcde`);
    await world.settle();
    await world.pass(10);
    await world.finish();
    await world.settle();
    await world.pass(10);
    expect(world.run().status).toMatchObject({ phase: 'done', reason: 'Completed' });
  });

  it('begins its grace anew when it left the cache meanwhile', async () => {
    const world = new RunWorld();
    await working(world);
    world.api.vanish(Pods, `${NAMESPACE}/ada-1-abcde`);
    await world.settle();
    const run = world.run();
    world.api.vanish(AgentRuns, KEY);
    await world.pass(10);
    world.api.seed(AgentRuns, run);
    await world.settle();
    await world.pass(10);
    expect(world.run().status?.phase).toBe('running');
    await world.pass(5);
    expect(world.run().status?.reason).toBe('PodDeleted');
  });

  it('loses against a finish that was written at the same time', async () => {
    const world = new RunWorld();
    await working(world);
    world.api.vanish(Pods, `${NAMESPACE}/ada-1-abcde`);
    await world.settle();
    world.beforeNextStatusWrite(() => world.finish());
    await world.pass(15);
    expect(world.writes()).toEqual(['patch agentruns/status ada-1', 'patch jobs ada-1']);
    expect(world.run().status).toMatchObject({ phase: 'done', reason: 'Completed' });
  });

  it('takes the outcome from the termination message when no gateway was there', async () => {
    const world = new RunWorld();
    await working(world);
    const message = JSON.stringify({
      v: 1,
      reason: 'Completed',
      message: '',
      output: 'hi',
      outputTruncated: false,
      steps: 1,
    });
    const terminated = { exitCode: 0, message };
    await world.api.patch(
      Pods,
      { namespace: NAMESPACE, name: 'ada-1-abcde' },
      { status: { phase: 'Succeeded', containerStatuses: [{ name: 'runner', state: { terminated } }] } },
      { type: 'merge', subresource: 'status' },
    );
    world.writes();
    await world.settle();
    expect(world.writes()).toEqual(['patch agentruns/status ada-1', 'patch jobs ada-1']);
    expect(world.run().status).toMatchObject({ phase: 'done', reason: 'Completed', output: 'hi' });
  });

  it('is cancelled by force when it does not stop for 60 s', async () => {
    const world = new RunWorld();
    await working(world);
    await world.api.patch(AgentRuns, REF, { spec: { cancelRequested: true } }, { type: 'merge' });
    world.writes();
    await world.settle();
    await world.pass(59);
    // Since when, for the next leader.
    expect(world.writes()).toEqual(['patch agentruns/status ada-1']);
    await world.pass(1);
    expect(world.writes()).toEqual(['patch agentruns/status ada-1', 'patch jobs ada-1']);
    expect(world.run().status?.phase).toBe('cancelled');
    await world.pass(5);
    expect(world.writes()).toEqual(['delete jobs ada-1']);
  });

  it('ends as ImagePullFailed and loses its Job', async () => {
    const world = new RunWorld();
    world.api.seed(AgentRuns, makeRun());
    await world.settle();
    const waiting = { reason: 'ImagePullBackOff', message: 'no such image' };
    world.api.seed(Pods, makePod({ ...scheduled(), containerStatuses: [{ name: 'runner', state: { waiting } }] }));
    world.writes();
    await world.pass(301);
    await world.pass(1);
    expect(world.writes()).toEqual(['patch agentruns/status ada-1', 'delete jobs ada-1']);
    expect(world.run().status).toMatchObject({ phase: 'error', reason: 'ImagePullFailed' });
    expect(world.run().status?.message).toContain('no such image');
  });

  it('names the pull secret that was missing when an image could not be pulled', async () => {
    const world = new RunWorld();
    world.api.seed(AgentRuns, makeRun());
    await world.settle();
    const waiting = { reason: 'ImagePullBackOff', message: 'denied' };
    const pod = makePod({ ...scheduled(), containerStatuses: [{ name: 'runner', state: { waiting } }] });
    world.api.seed(Pods, pod);
    const warn = (reason: string, message: string, second: number) =>
      world.api.seed(Events, {
        apiVersion: 'v1',
        kind: 'Event',
        metadata: { name: reason.toLowerCase(), namespace: pod.metadata.namespace ?? '' },
        involvedObject: { kind: 'Pod', name: pod.metadata.name },
        type: 'Warning',
        reason,
        message,
        lastTimestamp: `2026-01-01T00:00:0${second}Z`,
      });
    warn('FailedToRetrieveImagePullSecret', 'Unable to retrieve some image pull secrets (registry)', 1);
    warn('Failed', 'Error: ImagePullBackOff', 9);
    await world.pass(301);
    await world.pass(1);
    expect(world.run().status).toMatchObject({
      reason: 'ImagePullFailed',
      message: expect.stringMatching(/denied.* Kubernetes says: .*image pull secrets \(registry\)/),
    });
  });
});

describe('a deleted run', () => {
  it('is cancelled first when it works: outcome, Job, totals, release', async () => {
    const world = new RunWorld();
    await working(world);
    await world.api.delete(AgentRuns, REF);
    world.writes();
    await world.settle();
    expect(world.writes()).toEqual(['patch agentruns/status ada-1', 'delete jobs ada-1']);
    expect(world.run().status).toMatchObject({ phase: 'cancelled', reason: 'Cancelled' });
    await world.pass(120);
    expect(world.writes()).toEqual([
      'patch agentruns/status ada-1',
      'patch agents/status ada',
      'patch boxes/status dev',
      'patch workspaces/status acme',
      'patch agentruns ada-1',
    ]);
    expect(world.api.peek(AgentRuns, KEY)).toBeUndefined();
    expect(world.api.peek(Boxes, 'dev')?.status?.folded).toMatchObject({ runs: 1 });
  });

  it('is folded at once when it has ended', async () => {
    const world = new RunWorld();
    await working(world);
    await world.finish();
    await world.settle();
    await world.api.delete(AgentRuns, REF);
    await world.settle();
    expect(world.api.peek(AgentRuns, KEY)).toBeUndefined();
    expect(world.api.peek(Agents, `${NAMESPACE}/ada`)?.status).toMatchObject({
      folded: { runs: 1, inputTokens: 10, outputTokens: 5, costMicroUsd: 100 },
    });
  });
});

describe('the counts of a Box', () => {
  it('tell runs that hold a Job and runs that wait', async () => {
    const world = new RunWorld({ box: makeBox({ maxRunning: 1 }) });
    for (const name of ['ada-1', 'ada-2', 'ada-3']) world.api.seed(AgentRuns, makeRun(name));
    await world.settle();
    expect(world.controllers.counts.running(NAMESPACE)).toBe(1);
    expect(world.controllers.counts.queued(NAMESPACE)).toBe(2);
  });
});
