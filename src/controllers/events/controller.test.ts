import { AgentRuns } from '../../api/v1alpha1/agent-run.js';
import type { KubeObject, ResourceType } from '../../api/meta.js';
import { Agents } from '../../api/v1alpha1/agent.js';
import { Boxes } from '../../api/v1alpha1/box.js';
import { Jobs, Pods } from '../../kube/core-types.js';
import type { ObjectRef } from '../../kube/types.js';
import { NAMESPACE, makeAgent, makeBox, makePod, makeRun, scheduled } from '../../../test/builders/run-objects.js';
import { RunWorld } from '../../../test/builders/run-world.js';

const KEY = `${NAMESPACE}/ada-1`;
const REF = { namespace: NAMESPACE, name: 'ada-1' };

/** `<type> <reason> <object>` of the events since the last call. */
function told(world: RunWorld): string[] {
  return world.events.splice(0).map(({ type, reason, subject }) => `${type} ${reason} ${subject.name}`);
}

const pausedWorld = () => new RunWorld({ agent: makeAgent({ paused: true }) });

async function setPaused<T extends KubeObject>(world: RunWorld, type: ResourceType<T>, paused: boolean): Promise<void> {
  const ref = type.namespaced ? { namespace: NAMESPACE, name: 'ada' } : { name: 'dev' };
  await world.api.patch(type, ref, { spec: { paused } }, { type: 'merge' });
  await world.settle();
}

test('a short good run makes no event', async () => {
  const world = new RunWorld();
  world.api.seed(AgentRuns, makeRun());
  await world.settle();
  world.api.seed(Pods, makePod({ phase: 'Running', ...scheduled() }));
  await world.claim();
  await world.finish();
  await world.pass(300);
  expect(told(world)).toEqual([]);
});

test.each([
  ['error', 'ModelError', 'Warning ModelError ada-1'],
  ['cancelled', 'Cancelled', 'Normal Cancelled ada-1'],
] as const)(
  'a run that the gateway ends as %s is told once, whatever happens to it later',
  async (phase, reason, line) => {
    const world = new RunWorld();
    world.api.seed(AgentRuns, makeRun());
    await world.settle();
    await world.claim();
    await world.finish('ada-1', phase, reason);
    await world.pass(300);
    expect(told(world)).toEqual([line]);
  },
);

describe('a run that waits', () => {
  test('is told after 30 s, once, with what its status says', async () => {
    const world = pausedWorld();
    world.api.seed(AgentRuns, makeRun());
    await world.settle();
    await world.pass(29);
    expect(told(world)).toEqual([]);
    await world.pass(1);
    expect(world.events).toMatchObject([{ note: world.run().status?.message, action: 'Queued' }]);
    expect(told(world)).toEqual(['Normal AgentPaused ada-1']);
    await world.pass(3600);
    expect(told(world)).toEqual([]);
  });

  test('for less is not', async () => {
    const world = pausedWorld();
    world.api.seed(AgentRuns, makeRun());
    await world.settle();
    await world.pass(20);
    await setPaused(world, Agents, false);
    expect(world.api.peek(Jobs, KEY)).toBeDefined();
    // Its status still says why it waited.
    await world.pass(20);
    expect(told(world)).toEqual([]);
  });

  test('for another reason is told again, and for the first one again not', async () => {
    const world = new RunWorld({ box: makeBox({ paused: true }) });
    world.api.seed(AgentRuns, makeRun());
    await world.settle();
    await world.pass(30);
    await setPaused(world, Agents, true);
    expect(told(world)).toEqual(['Normal BoxPaused ada-1', 'Normal AgentPaused ada-1']);
    await setPaused(world, Agents, false);
    await world.pass(60);
    expect(world.run().status?.reason).toBe('BoxPaused');
    expect(told(world)).toEqual([]);
  });
});

test('a run that lost its Job before its pod was there is told once, and not again as one that waits', async () => {
  const world = new RunWorld();
  world.api.seed(AgentRuns, makeRun());
  await world.settle();
  await world.pass(120);
  expect(world.run().status?.reason).toBe('NoCapacity');
  expect(world.events).toMatchObject([{ note: world.run().status?.message, action: 'ReturnedToQueue' }]);
  expect(told(world)).toEqual(['Warning NoCapacity ada-1']);
  await world.pass(60);
  expect(told(world)).toEqual([]);
});

describe('the next leader', () => {
  test('tells nothing of what was told long ago', async () => {
    const world = new RunWorld({ box: makeBox({ paused: true }) });
    world.api.seed(AgentRuns, makeRun('ada-1'));
    world.api.seed(AgentRuns, makeRun('ada-2'));
    await world.settle();
    await world.api.patch(AgentRuns, { ...REF, name: 'ada-2' }, { spec: { cancelRequested: true } }, { type: 'merge' });
    await world.settle();
    await world.pass(120);
    expect(told(world)).toEqual(['Normal Cancelled ada-2', 'Normal BoxPaused ada-1']);
    const next = new RunWorld({ takesOverFrom: world });
    replay(next);
    await next.settle();
    await next.pass(300);
    expect(told(next)).toEqual([]);
    // What is new is told.
    await setPaused(next, Agents, true);
    expect(told(next)).toEqual(['Normal AgentPaused ada-1']);
  });

  test('tells the last minute with the same times, so that nothing is lost or there twice', async () => {
    const world = pausedWorld();
    world.api.seed(AgentRuns, makeRun('ada-1'));
    await world.settle();
    await world.pass(40);
    const next = new RunWorld({ takesOverFrom: world });
    replay(next);
    await next.settle();
    expect(next.events).toEqual(world.events);
    expect(told(next)).toEqual(['Normal AgentPaused ada-1']);
  });

  /** Every run comes as an addition, as when leadership begins. */
  function replay(world: RunWorld): void {
    for (const run of world.api.all(AgentRuns)) {
      world.api.vanish(AgentRuns, `${NAMESPACE}/${run.metadata.name}`);
      world.api.seed(AgentRuns, run);
    }
  }
});

test('conditions of a Box and an agent are told when they turn', async () => {
  const world = new RunWorld({ box: makeBox() });
  const set = async <T extends KubeObject>(type: ResourceType<T>, ref: ObjectRef, reason: string) => {
    const status = reason === 'Ready' ? 'True' : 'False';
    const lastTransitionTime = new Date(world.clock.now()).toISOString();
    const conditions = [{ type: 'Ready', status, reason, message: '', lastTransitionTime }];
    await world.api.patch(type, ref, { status: { conditions } }, { type: 'merge', subresource: 'status' });
  };
  await set(Boxes, { name: 'dev' }, 'WorkspaceNotFound');
  await set(Boxes, { name: 'dev' }, 'Ready');
  await set(Agents, { namespace: NAMESPACE, name: 'ada' }, 'NoFreeSlot');
  expect(told(world)).toEqual(['Warning WorkspaceNotFound dev', 'Normal Ready dev', 'Warning NoFreeSlot ada']);
});
