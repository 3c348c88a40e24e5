import { AgentRuns } from '../../../api/v1alpha1/agent-run.js';
import type { AgentRun } from '../../../api/v1alpha1/agent-run.js';
import { Jobs } from '../../../kube/core-types.js';
import { NAMESPACE, makeBox, makeManifestRun, makeRun } from '../../../../test/builders/run-objects.js';
import { RunWorld } from '../../../../test/builders/run-world.js';

const lost = (name: string, spec: Partial<AgentRun['spec']> = {}): AgentRun => ({
  ...makeRun(name, { spec }),
  status: { phase: 'error', reason: 'NodeLost', message: 'gone', usageFinal: true },
});

function resuming(name: string, resume: string, createdAt = '2026-01-01T00:00:01Z'): AgentRun {
  const run = makeManifestRun(name);
  return { ...run, metadata: { ...run.metadata, creationTimestamp: createdAt }, spec: { ...run.spec, resume } };
}

describe('a run that names another one in spec.resume', () => {
  it.each([
    ['opened its session', lost('ada-1'), 's-ada-1'],
    ['was one of a session', lost('ada-1', { sessionId: 's-7' }), 's-7'],
  ])(
    'goes on with the session of one that %s, in as many writes as any run by hand',
    async (_how, other, sessionId) => {
      const world = new RunWorld();
      world.api.seed(AgentRuns, other);
      await world.settle();
      world.writes();
      world.api.seed(AgentRuns, resuming('again', 'ada-1'));
      await world.settle();
      expect(world.writes()).toEqual(['patch agentruns/status again', 'patch agentruns again', 'create jobs again']);
      expect(world.run('again').status).toMatchObject({ sessionId, agentUid: 'uid-agent-ada' });
    },
  );

  it('waits for the run of that session which works', async () => {
    const world = new RunWorld();
    world.api.seed(AgentRuns, makeRun('ada-1'));
    await world.settle();
    world.api.seed(AgentRuns, resuming('again', 'ada-1'));
    await world.settle();
    expect(world.run('again').status).toMatchObject({ phase: 'running', reason: 'SessionBusy', sessionId: 's-ada-1' });
    expect(world.api.peek(Jobs, `${NAMESPACE}/again`)).toBeUndefined();
  });

  it('finds its session through a run that resumes itself, and never waits in a circle', async () => {
    const world = new RunWorld({ box: makeBox({ maxRunning: 1 }) });
    world.api.seed(AgentRuns, lost('ada-1'));
    world.api.seed(AgentRuns, resuming('second', 'first', '2026-01-01T00:00:02Z'));
    world.api.seed(AgentRuns, resuming('first', 'ada-1', '2026-01-01T00:00:01Z'));
    world.api.seed(AgentRuns, resuming('round', 'trip', '2026-01-01T00:00:03Z'));
    world.api.seed(AgentRuns, resuming('trip', 'round', '2026-01-01T00:00:04Z'));
    await world.settle();
    await world.pass(2);
    expect(world.run('second').status?.sessionId).toBe('s-ada-1');
    expect(world.run('round').status).toMatchObject({ phase: 'error', reason: 'InvalidRun' });
    expect(world.run('round').status?.message).toContain('spec.resume: AgentRun trip is not older than round.');
    await world.pass(2);
    expect(world.run('trip').status).toMatchObject({ sessionId: 's-round' });
  });

  it.each([
    ['is not there', undefined, 'there is no AgentRun ada-1 in namespace bw-dev'],
    [
      'is one of another agent',
      lost('ada-1', { agent: 'bob' }),
      'AgentRun ada-1 is one of agent bob, and this one of agent ada.',
    ],
  ])('ends as InvalidRun when that one %s', async (_why, other, message) => {
    const world = new RunWorld();
    if (other !== undefined) world.api.seed(AgentRuns, other);
    world.api.seed(AgentRuns, resuming('again', 'ada-1'));
    await world.settle();
    expect(world.run('again').status).toMatchObject({
      phase: 'error',
      reason: 'InvalidRun',
      message: expect.stringContaining(message),
    });
  });
});
