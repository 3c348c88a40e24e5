import { Agents } from '../../../api/v1alpha1/agent.js';
import { AgentRuns } from '../../../api/v1alpha1/agent-run.js';
import type { AgentRun } from '../../../api/v1alpha1/agent-run.js';
import { NAMESPACE, makeAgent, makeRun } from '../../../../test/builders/run-objects.js';
import { RunWorld } from '../../../../test/builders/run-world.js';
import { apiError } from '../../../../test/builders/recording-api.js';

const FAILED = { phase: 'error', reason: 'ModelError', atRest: true } as const;

/** A run that worked and ended with an error of its model. */
async function failed(world: RunWorld, more: Partial<AgentRun['status']> = {}, name = 'ada-1'): Promise<void> {
  world.api.seed(AgentRuns, makeRun(name, { spec: { actor: 'bw_key', limits: { stepLimit: 7 } } }));
  await world.settle();
  await world.claim(name);
  await world.finish(name, 'error', 'ModelError', { ...FAILED, ...more });
  await world.settle();
  world.writes();
}

const withRetries = (retries: number) => new RunWorld({ agent: makeAgent({ retries }) });
const retriesOf = (world: RunWorld) => world.api.all(AgentRuns).filter(({ spec }) => spec.retryOf !== undefined);

describe('spec.retries of an agent', () => {
  it('takes a run further after half a minute: the next run of its session, which the first one names', async () => {
    const world = withRetries(1);
    await failed(world);
    await world.pass(29);
    expect(retriesOf(world)).toEqual([]);
    await world.pass(1);
    const [retry] = retriesOf(world);
    expect(retry?.spec).toMatchObject({
      agent: 'ada',
      message: 'Go on with the task where it was interrupted.',
      sessionId: 's-ada-1',
      actor: 'bw_key',
      limits: { stepLimit: 7 },
      retryOf: { name: 'ada-1', uid: world.run().metadata.uid, attempt: 1 },
    });
    expect(world.run().status?.retriedBy).toBe(retry?.metadata.name);
    const name = retry?.metadata.name ?? '';
    expect(world.writes()).toEqual([`create agentruns ${name}`, 'patch agentruns/status ada-1', `create jobs ${name}`]);
    await world.claim(name);
    await world.finish(name, 'error', 'ModelError', FAILED);
    await world.pass(3_600);
    expect(retriesOf(world)).toHaveLength(1);
  });

  it('says a message again that no pod has taken', async () => {
    const world = withRetries(2);
    world.api.seed(AgentRuns, makeRun('ada-1', { spec: { message: 'Deploy it.' } }));
    await world.settle();
    await world.finish('ada-1', 'error', 'ImagePullFailed');
    await world.pass(30);
    expect(retriesOf(world)).toMatchObject([{ spec: { message: 'Deploy it.', retryOf: { attempt: 1 } } }]);
  });

  it('makes one retry, whatever write gets lost', async () => {
    const world = withRetries(1);
    await failed(world);
    world.api.failNext({ verb: 'patch', resource: 'agentruns', error: apiError(500, 'InternalError', 'no') });
    await world.pass(30);
    await world.pass(60);
    expect(retriesOf(world)).toHaveLength(1);
    const next = new RunWorld({ takesOverFrom: world });
    await next.pass(600);
    expect(retriesOf(next)).toHaveLength(1);
    expect(next.run().status?.retriedBy).toBe(retriesOf(next)[0]?.metadata.name);
  });

  it.each([
    ['the agent has none', 0, {}],
    ['a call of a tool was under way', 5, { atRest: undefined }],
  ])('does nothing when %s', async (_why, retries, more) => {
    const world = withRetries(retries);
    await failed(world, more);
    await world.pass(3_000);
    expect(retriesOf(world)).toEqual([]);
  });

  it('leaves a session alone in which somebody has spoken since', async () => {
    const world = withRetries(5);
    await failed(world);
    const createdAt = new Date(world.clock.now() + 1).toISOString();
    world.api.seed(AgentRuns, makeRun('ada-2', { spec: { sessionId: 's-ada-1', createdAt } }));
    await world.settle();
    await world.pass(600);
    expect(retriesOf(world)).toEqual([]);
  });

  it('waits for room in the backlog', async () => {
    const world = withRetries(1);
    world.backlogExceeded = 'agent';
    await failed(world);
    await world.pass(40);
    expect(retriesOf(world)).toEqual([]);
    world.backlogExceeded = undefined;
    await world.pass(30);
    expect(retriesOf(world)).toHaveLength(1);
  });

  it('concerns runs that have failed just now when it is set', async () => {
    const world = withRetries(0);
    await failed(world);
    await world.pass(60);
    const ref = { namespace: NAMESPACE, name: 'ada' };
    await world.api.patch(Agents, ref, { spec: { retries: 1 } }, { type: 'merge' });
    await world.settle();
    expect(retriesOf(world)).toHaveLength(1);
    expect(retriesOf(world)[0]?.metadata.namespace).toBe(NAMESPACE);
  });
});
