import { FakeClock } from '../../../test/builders/fake-clock.js';
import type { Gate } from './admission.js';
import { BOX_PAUSE_MS, RunQueue } from './run-queue.js';
import type { QueuedRun } from './run-queue.js';

function setUp(limits: { maxRunning?: number; perBox?: number } = {}) {
  const clock = new FakeClock();
  const gates = new Map<string, Gate>();
  const queue = new RunQueue({
    clock,
    maxRunning: limits.maxRunning ?? 100,
    facts: {
      box: () => ({ gate: undefined, maxRunning: limits.perBox ?? 20, maxRunningPerAgent: 5 }),
      agentGate: (_box, agent) => gates.get(agent),
    },
  });
  return { clock, queue, gates };
}

function run(name: string, more: Partial<QueuedRun> = {}): QueuedRun {
  return {
    key: name,
    uid: `uid-${name}`,
    box: 'a',
    agent: 'x',
    session: `s-${name}`,
    acceptedAt: 0,
    working: false,
    ...more,
  };
}

describe('the queue of runs', () => {
  it('counts an admitted run as working before its Job is seen, so that lag overruns no limit', () => {
    const { queue } = setUp({ perBox: 1 });
    queue.update('r1', run('r1'));
    queue.update('r2', run('r2'));
    expect(queue.admitNext()).toEqual(['r1']);
    queue.update('r1', run('r1'));
    expect(queue.admitNext()).toEqual([]);
    expect(queue.counts('a')).toEqual({ running: 1, queued: 1 });
    expect(queue.reasonFor('r2')).toBe('BoxLimit');
  });

  it('keeps the place when the Job shows up, and frees it when the run ends', () => {
    const { queue } = setUp({ perBox: 1 });
    queue.update('r1', run('r1'));
    queue.update('r2', run('r2'));
    queue.admitNext();
    queue.update('r1', run('r1', { working: true }));
    expect(queue.isAdmitted('r1', 'uid-r1')).toBe(false);
    expect(queue.admitNext()).toEqual([]);
    queue.update('r1', undefined);
    expect(queue.admitNext()).toEqual(['r2']);
  });

  it('takes an admission back when no Job shows up for a minute', async () => {
    const { queue, clock } = setUp();
    queue.update('r1', run('r1'));
    queue.admitNext();
    queue.jobCreated('r1');
    expect(queue.isJobCreated('r1')).toBe(true);
    expect(queue.nextChangeMs()).toBe(60_000);
    await clock.advance(60_000);
    expect(queue.admitNext()).toEqual(['r1']);
    expect(queue.isJobCreated('r1')).toBe(false);
  });

  it('does not give the place of a run to its namesake', () => {
    const { queue } = setUp();
    queue.update('r1', run('r1'));
    queue.admitNext();
    queue.update('r1', run('r1', { uid: 'another' }));
    expect(queue.isAdmitted('r1', 'another')).toBe(false);
    expect(queue.counts('a')).toEqual({ running: 0, queued: 1 });
  });

  it('admits nothing in a paused Box, and goes on by itself', async () => {
    const { queue, clock } = setUp();
    queue.pause('a', 'NoCapacity');
    queue.update('r1', run('r1'));
    queue.update('r2', run('r2', { box: 'b' }));
    expect(queue.admitNext()).toEqual(['r2']);
    expect(queue.reasonFor('r1')).toBe('NoCapacity');
    await clock.advance(BOX_PAUSE_MS);
    expect(queue.admitNext()).toEqual(['r1']);
  });

  it('names the session as the reason behind an older run that waits', () => {
    const { queue, gates } = setUp();
    queue.update('r2', run('r2', { session: 's', acceptedAt: 2 }));
    queue.update('r1', run('r1', { session: 's', acceptedAt: 1 }));
    expect(queue.reasonFor('r2')).toBe('SessionBusy');
    gates.set('x', 'AgentPaused');
    expect(queue.reasonFor('r2')).toBe('AgentPaused');
  });

  it('tells about real changes only', () => {
    const { queue } = setUp();
    const boxes: string[] = [];
    const stop = queue.onChange((box) => boxes.push(box));
    queue.update('r1', run('r1'));
    queue.update('r1', run('r1'));
    queue.update('r2', undefined);
    stop();
    queue.update('r1', undefined);
    expect(boxes).toEqual(['a']);
  });

  it('is empty again after everything ended, in any order', () => {
    const { queue } = setUp({ maxRunning: 3 });
    const names = ['c', 'a', 'b', 'e', 'd'];
    for (const [i, name] of names.entries()) queue.update(name, run(name, { acceptedAt: i % 2 }));
    expect(queue.admitNext()).toEqual(['b', 'c', 'd']);
    for (const name of ['d', 'a', 'c', 'e', 'b']) queue.update(name, undefined);
    expect(queue.counts('a')).toEqual({ running: 0, queued: 0 });
    queue.update('z', run('z'));
    expect(queue.admitNext()).toEqual(['z']);
  });
});
