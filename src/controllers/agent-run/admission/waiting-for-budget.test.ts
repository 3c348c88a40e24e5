/** Runs whose budget has nothing left wait for it, and start by themselves. */
import type { AgentRun } from '../../../api/v1alpha1/agent-run.js';
import { AgentRuns } from '../../../api/v1alpha1/agent-run.js';
import { Agents } from '../../../api/v1alpha1/agent.js';
import { Jobs } from '../../../kube/core-types.js';
import { NAMESPACE, makeAgent, makeBox, makeRun } from '../../../../test/builders/run-objects.js';
import { RunWorld } from '../../../../test/builders/run-world.js';

const DAY_SECONDS = 86_400;
const LATER = '2026-01-01T00:00:01.000Z';

/** `ada-1` has used `tokens` of a day's budget, for good. */
async function spent(world: RunWorld, tokens: number): Promise<void> {
  const usage = { steps: 1, inputTokens: tokens, outputTokens: 0, totalTokens: tokens };
  const at = new Date(world.clock.now()).toISOString();
  const budget = { at, granted: { tokens } };
  world.api.seed(AgentRuns, makeRun('ada-1', { status: { phase: 'done', usage, usageFinal: true, budget } }));
  await world.settle();
  world.writes();
}

const jobs = (world: RunWorld) => world.api.all(Jobs).map(({ metadata }) => metadata.name);
const seed = (world: RunWorld, name: string, spec: Partial<AgentRun['spec']> = {}) =>
  world.api.seed(AgentRuns, makeRun(name, { spec: { createdAt: LATER, ...spec } }));

it('waits with one write, which says until when, and starts with the new day', async () => {
  const world = new RunWorld({ agent: makeAgent({ budget: [{ per: 'day', tokens: 20_000 }] }) });
  await spent(world, 20_000);
  seed(world, 'ada-2');
  await world.settle();
  await world.pass(300);
  expect(world.writes()).toEqual(['patch agentruns/status ada-2']);
  expect(world.run('ada-2').status).toMatchObject({
    phase: 'running',
    reason: 'WaitingForBudget',
    message:
      'Nothing is left of the budget of Agent ada (20000 tokens a day): it is used, or granted to runs that work. The run starts by itself when they leave something, at 2026-01-02T00:00:00Z at the latest. Next: raise spec.budget of Agent ada, or wait.',
  });

  await world.pass(DAY_SECONDS - 301);
  expect(jobs(world)).toEqual([]);
  await world.pass(2);
  expect(jobs(world)).toEqual(['ada-2']);
});

it('starts when the budget is raised', async () => {
  const world = new RunWorld({ agent: makeAgent({ budget: [{ per: 'day', tokens: 20_000 }] }) });
  await spent(world, 20_000);
  seed(world, 'ada-2');
  await world.settle();
  const ref = { namespace: NAMESPACE, name: 'ada' };
  await world.api.patch(Agents, ref, { spec: { budget: [{ per: 'day', tokens: 30_000 }] } }, { type: 'merge' });
  await world.settle();
  expect(jobs(world)).toEqual(['ada-2']);
});

it('starts when a run that works leaves something of what it was granted', async () => {
  const world = new RunWorld({ box: makeBox({ budget: [{ per: 'month', usd: '0.05' }] }) });
  world.api.seed(AgentRuns, makeRun('ada-1'));
  await world.settle();
  seed(world, 'ada-2');
  await world.settle();
  expect(world.run('ada-2').status).toMatchObject({
    reason: 'WaitingForBudget',
    message: expect.stringContaining('budget of Box dev (0.05 US dollars a month)'),
  });
  expect(world.run('ada-2').status?.message).toContain('at 2026-02-01T00:00:00Z at the latest');
  await world.claim('ada-1');
  await world.finish('ada-1');
  await world.settle();
  expect(jobs(world)).toContain('ada-2');
});

it('holds back nobody with a budget of its own that has room, and tells all it holds back', async () => {
  const world = new RunWorld({
    agent: makeAgent({ budget: [{ per: 'day', tokens: 20_000 }] }),
    box: makeBox({ maxRunningPerAgent: 1 }),
  });
  world.api.seed(Agents, makeAgent({}, 'bob'));
  seed(world, 'ada-2');
  await world.settle();
  seed(world, 'ada-3');
  seed(world, 'ada-4');
  seed(world, 'bob-1', { agent: 'bob', agentUid: 'uid-agent-bob' });
  await world.settle();
  expect(['ada-3', 'ada-4'].map((name) => world.run(name).status?.reason)).toEqual(['AgentLimit', 'AgentLimit']);
  expect(jobs(world)).toEqual(['ada-2', 'bob-1']);

  const budget = { at: LATER, granted: { tokens: 20_000 } };
  const usage = { steps: 1, inputTokens: 20_000, outputTokens: 0, totalTokens: 20_000 };
  const ended = { phase: 'done' as const, reason: 'Completed', usage, usageFinal: true, budget };
  world.api.seed(AgentRuns, { ...world.run('ada-2'), status: ended });
  await world.settle();
  expect(['ada-3', 'ada-4'].map((name) => world.run(name).status?.reason)).toEqual([
    'WaitingForBudget',
    'WaitingForBudget',
  ]);
});

it('never holds back a run that its parent waits for: it is told no by its gateway', async () => {
  const world = new RunWorld({ agent: makeAgent({ budget: [{ per: 'day', tokens: 20_000 }] }) });
  await spent(world, 20_000);
  world.api.seed(AgentRuns, makeRun('boss', { spec: { agent: 'bob' } }));
  const parent = { name: 'boss', uid: 'uid-boss', depth: 1, agents: ['bob'], waits: true };
  seed(world, 'ada-2', { parent });
  await world.settle();
  expect(jobs(world)).toContain('ada-2');
});

it('keeps nothing of what was granted to a run that went back to the queue', async () => {
  const world = new RunWorld({ box: makeBox({ budget: [{ per: 'day', tokens: 50_000 }], maxRunning: 1 }) });
  world.api.seed(AgentRuns, makeRun('ada-1'));
  await world.settle();
  // No pod comes: back to the queue, and its Job goes.
  await world.pass(125);
  expect(world.run('ada-1').status?.reason).toBe('NoCapacity');
  await world.api.patch(
    AgentRuns,
    { namespace: NAMESPACE, name: 'ada-1' },
    { spec: { cancelRequested: true } },
    { type: 'merge' },
  );
  seed(world, 'ada-2');
  await world.pass(60);
  expect(jobs(world)).toEqual(['ada-2']);
});
