import { findCondition } from '../../api/conditions.js';
import type { ObjectMeta } from '../../api/meta.js';
import { AgentRunChunks } from '../../api/v1alpha1/agent-run-chunk.js';
import { AgentRuns } from '../../api/v1alpha1/agent-run.js';
import type { AgentRun } from '../../api/v1alpha1/agent-run.js';
import { Agents } from '../../api/v1alpha1/agent.js';
import { writeChunk } from '../../transcript/chunk-store.js';
import { encodeEvents } from '../../transcript/codec.js';
import { MemoryArchive } from '../../../test/builders/memory-archive.js';
import { apiError } from '../../../test/builders/recording-api.js';
import { toolEvent } from '../../../test/builders/run-events.js';
import { NAMESPACE, makeAgent, makeRun } from '../../../test/builders/run-objects.js';
import { RunWorld } from '../../../test/builders/run-world.js';

const SCOPE = { workspace: 'acme', box: 'dev', agentUid: 'uid-agent-ada' };
const DELETED: Partial<ObjectMeta> = { deletionTimestamp: '2026-01-01T00:10:00Z' };

function endedRun(name = 'ada-1', status: Partial<NonNullable<AgentRun['status']>> = {}): AgentRun {
  const ended = { phase: 'done', reason: 'Completed', output: 'Hi', usageFinal: true } as const;
  return makeRun(name, { status: { ...ended, finishedAt: '2026-01-01T00:00:05.000Z', ...status } });
}

function deletedRun(name = 'ada-1', status: Partial<NonNullable<AgentRun['status']>> = {}): AgentRun {
  const run = endedRun(name, status);
  return { ...run, metadata: { ...run.metadata, ...DELETED } };
}

function setup() {
  const archive = new MemoryArchive();
  const world = new RunWorld({ archive });
  const isThere = (name = 'ada-1') => world.api.peek(AgentRuns, `${NAMESPACE}/${name}`) !== undefined;
  return { archive, world, isThere };
}

describe('a run that is removed', () => {
  it('is archived with texts and transcript, then counted, then gone', async () => {
    const { archive, world, isThere } = setup();
    const transcript = { state: 'full', chunks: 1, bytes: 10 } as const;
    const run = world.api.seed(AgentRuns, deletedRun('ada-1', { transcript }));
    const owner = { namespace: NAMESPACE, name: 'ada-1', uid: run.metadata.uid ?? '' };
    await writeChunk(world.api, owner, 0, await encodeEvents([toolEvent(1)]));
    world.writes();
    await world.settle();
    expect(isThere()).toBe(false);
    const stored = await archive.find(SCOPE, { name: 'ada-1' });
    expect([stored?.spec.message, stored?.status?.output]).toEqual(['hello', 'Hi']);
    expect(stored?.spec.sessionTitle).toBe('hello');
    expect(await archive.chunks(SCOPE, owner.uid)).toEqual([
      world.api.peek(AgentRunChunks, `${NAMESPACE}/ada-1.00`)?.spec,
    ]);
    expect(world.api.peek(Agents, `${NAMESPACE}/ada`)?.status?.folded?.runs).toBe(1);
    expect(world.writes().at(-1)).toBe('patch agentruns ada-1');
    expect(world.archiveWaiting).toBe(0);
  });

  it('is archived once, after its usage is final', async () => {
    const { archive, world, isThere } = setup();
    world.api.seed(AgentRuns, deletedRun('ada-1', { usageFinal: undefined, finishedAt: '2026-01-01T00:00:00.000Z' }));
    await world.settle();
    expect([archive.calls, isThere()]).toEqual([[], true]);
    await world.pass(120);
    expect([archive.calls, isThere()]).toEqual([['put'], false]);
  });

  it('is not archived while nobody removes it', async () => {
    const { archive, world } = setup();
    world.api.seed(AgentRuns, endedRun());
    await world.settle();
    await world.pass(3600);
    expect(archive.calls).toEqual([]);
  });

  it.each([
    [
      'its agent goes with it',
      { ...makeAgent(), metadata: { ...makeAgent().metadata, ...DELETED, finalizers: ['x'] } },
    ],
    ['its agent has a successor', { ...makeAgent(), metadata: { ...makeAgent().metadata, uid: 'uid-successor' } }],
  ])('needs no archive when %s', async (_why, agent) => {
    const archive = new MemoryArchive();
    const world = new RunWorld({ archive, agent });
    world.api.seed(AgentRuns, deletedRun());
    await world.settle();
    expect(world.api.peek(AgentRuns, `${NAMESPACE}/ada-1`)).toBeUndefined();
    expect(archive.calls).toEqual([]);
  });

  it('goes although it was never taken on', async () => {
    const { archive, world } = setup();
    const run = deletedRun();
    world.api.seed(AgentRuns, { ...run, metadata: { ...run.metadata, finalizers: ['foreign/keeps-it'] } });
    await world.settle();
    expect(archive.calls).toEqual([]);
    expect(world.archiveWaiting).toBe(0);
  });
});

describe('while the archive is away', () => {
  it('a removed run stays, says why with one write, and goes when the archive is back', async () => {
    const { archive, world, isThere } = setup();
    archive.available = false;
    world.api.seed(AgentRuns, deletedRun());
    await world.settle();
    expect(world.writes()).toEqual(['patch agentruns/status ada-1']);
    expect(findCondition(world.run().status?.conditions, 'Archived')).toEqual({
      type: 'Archived',
      status: 'False',
      reason: 'ArchiveUnavailable',
      message:
        'It was deleted, but the PostgreSQL archive cannot be used at the moment. Check PostgreSQL and the Secret of archive.postgres.secretName (docs/archive.md); the deletion goes on by itself.',
      lastTransitionTime: '2026-01-01T00:00:00.000Z',
    });
    expect(world.archiveWaiting).toBe(1);
    await world.pass(3600);
    expect([world.writes(), isThere()]).toEqual([[], true]);
    archive.available = true;
    await world.pass(10);
    expect([isThere(), archive.names, world.archiveWaiting]).toEqual([false, ['ada-1'], 0]);
  });

  it('removed runs cost one read and one write each, whatever the number of tries', async () => {
    const { archive, world } = setup();
    archive.available = false;
    archive.resting = true;
    for (let number = 0; number < 20; number++) world.api.seed(AgentRuns, deletedRun(`ada-${number}`));
    await world.settle();
    for (let minute = 0; minute < 30; minute++) await world.pass(60);
    expect(archive.calls).toEqual([]);
    expect(world.api.reads).toHaveLength(20);
    expect(world.writes()).toHaveLength(20);
  });

  it('other runs start and end as ever', async () => {
    const { archive, world } = setup();
    archive.available = false;
    world.api.seed(AgentRuns, deletedRun('ada-old'));
    await world.settle();
    world.writes();
    world.api.seed(AgentRuns, makeRun('ada-new'));
    await world.settle();
    expect(world.writes()).toEqual(['create jobs ada-new']);
  });
});

describe('two controllers', () => {
  it('archive a run twice and count it once, when the first one stops before it lets the run go', async () => {
    const { archive, world, isThere } = setup();
    world.api.seed(AgentRuns, deletedRun());
    const crash = { verb: 'patch', resource: 'agentruns', error: apiError(500, 'InternalError') } as const;
    world.api.failNext(crash);
    await expect(world.settle()).rejects.toThrow('500');
    expect([isThere(), archive.names]).toEqual([true, ['ada-1']]);
    const successor = new RunWorld({ archive });
    for (const run of world.api.all(AgentRuns)) successor.api.seed(AgentRuns, run);
    for (const agent of world.api.all(Agents)) successor.api.seed(Agents, agent);
    await successor.settle();
    expect(successor.api.all(AgentRuns)).toEqual([]);
    expect(archive.names).toEqual(['ada-1']);
    expect(successor.api.peek(Agents, `${NAMESPACE}/ada`)?.status?.folded?.runs).toBe(1);
  });
});
