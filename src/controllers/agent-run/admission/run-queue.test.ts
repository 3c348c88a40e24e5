import * as fc from '../../../../test/builders/properties.js';
import { FakeClock } from '../../../../test/builders/fake-clock.js';
import type { Gate } from './limits-and-fairness.js';
import { BOX_PAUSE_MS, RunQueue } from './run-queue.js';
import type { QueuedRun } from './run-queue.js';

function setUp(limits: { maxRunning?: number; perBox?: number; manyBoxes?: boolean } = {}) {
  const clock = new FakeClock();
  const gates = new Map<string, Gate>();
  const inNeed: string[] = [];
  const queue = new RunQueue({
    clock,
    maxRunning: limits.maxRunning ?? 100,
    facts: {
      box: () => ({ gate: undefined, maxRunning: limits.perBox ?? 20, maxRunningPerAgent: 5, weight: 1 }),
      agentGate: (_box, agent) => gates.get(agent),
      hasNoBudget: () => false,
      hasManyBoxes: () => limits.manyBoxes === true,
      boxesInNeed: () => inNeed,
    },
  });
  return { clock, queue, gates, inNeed };
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
    expect(queue.hasReservation('r1', 'uid-r1')).toBe(false);
    expect(queue.admitNext()).toEqual([]);
    queue.update('r1', undefined);
    expect(queue.admitNext()).toEqual(['r2']);
  });

  it('lets a run in whose parent waits for it, whatever the limits say, and it takes no place', () => {
    const { queue, gates } = setUp({ maxRunning: 1, perBox: 1 });
    queue.update('r1', run('r1', { working: true }));
    queue.update('r2', run('r2'));
    queue.update('child', run('child', { exempt: true, agent: 'y' }));
    expect(queue.admitNext()).toEqual(['child']);
    expect(queue.hasReservation('child', 'uid-child')).toBe(true);
    expect(queue.counts('a')).toEqual({ running: 2, queued: 1 });
    queue.update('r1', undefined);
    expect(queue.admitNext()).toEqual(['r2']);
    queue.update('child', undefined);
    expect(queue.counts('a')).toEqual({ running: 1, queued: 0 });

    gates.set('y', 'AgentPaused');
    queue.update('child', run('child', { exempt: true, agent: 'y' }));
    expect(queue.admitNext()).toEqual([]);
    expect(queue.reasonFor('child')).toBe('AgentPaused');
    gates.clear();
    queue.update('busy', run('busy', { exempt: true, working: true, session: 's-child' }));
    expect(queue.admitNext()).toEqual([]);
    expect(queue.reasonFor('child')).toBe('SessionBusy');
    queue.update('busy', undefined);
    expect(queue.admitNext()).toEqual(['child']);
    queue.release('child');
    expect(queue.counts('a')).toEqual({ running: 1, queued: 1 });
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
    expect(queue.hasReservation('r1', 'another')).toBe(false);
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

  it('admits more in a Box as its pods get their nodes', () => {
    const { queue } = setUp();
    const names = ['r1', 'r2', 'r3', 'r4', 'r5', 'r6', 'r7'];
    for (const [i, name] of names.entries()) queue.update(name, run(name, { agent: `x${i}` }));
    expect(queue.admitNext()).toEqual(names.slice(0, 5));
    expect(queue.reasonFor('r6')).toBe('NoCapacity');
    expect(queue.isBehindNewPods('r6')).toBe(true);
    queue.update('r1', run('r1', { agent: 'x0', working: true, placing: true }));
    expect(queue.admitNext()).toEqual([]);
    queue.update('r1', run('r1', { agent: 'x0', working: true, placing: false }));
    expect(queue.admitNext()).toEqual(['r6']);
    queue.release('r2');
    expect(queue.admitNext()).toEqual(['r2']);
  });

  it('leaves what becomes free in a full cluster to the Box that has less of it', () => {
    const { queue, inNeed } = setUp();
    queue.update('a1', run('a1', { working: true }));
    queue.update('a2', run('a2'));
    queue.update('b1', run('b1', { box: 'b', working: true, placing: true }));
    queue.update('child', run('child', { exempt: true, agent: 'y' }));
    inNeed.push('b');
    expect(queue.admitNext()).toEqual(['child']);
    expect(queue.reasonFor('a2')).toBe('NoCapacity');
    inNeed.pop();
    expect(queue.admitNext()).toEqual(['a2']);
    queue.update('c1', run('c1', { box: 'c' }));
    inNeed.push('a');
    expect(queue.admitNext()).toEqual(['c1']);
  });

  it('keeps one place in ten for Boxes in which nothing works, where there is more than one Box', () => {
    const start = (manyBoxes: boolean) => {
      const { queue } = setUp({ maxRunning: 10, manyBoxes });
      for (let i = 0; i < 12; i++) {
        const name = `a${String(i).padStart(2, '0')}`;
        queue.update(name, run(name, { agent: `x${i}` }));
        for (const key of queue.admitNext()) queue.update(key, run(key, { agent: `x${i}`, working: true }));
      }
      const { running } = queue.counts('a');
      queue.update('b1', run('b1', { box: 'b' }));
      queue.update('b2', run('b2', { box: 'b' }));
      return { running, admitted: queue.admitNext() };
    };
    expect(start(true)).toEqual({ running: 9, admitted: ['b1'] });
    expect(start(false)).toEqual({ running: 10, admitted: [] });
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

describe('whatever comes and goes', () => {
  const events = fc.array(
    fc.record({
      name: fc.integer({ min: 0, max: 11 }),
      /** arrive and end change a run; seen: the cache shows its Job; lag: the cache still shows it without one. */
      event: fc.constantFrom('arrive', 'end', 'seen', 'lag' as const),
    }),
    { maxLength: 80 },
  );

  it('no limit is overrun, no session has two runs, and no run that could start is left waiting', () => {
    fc.assert(
      fc.property(events, (plan) => {
        const { queue } = setUp({ maxRunning: 6, perBox: 4 });
        const working = new Map<string, QueuedRun>();
        const known = new Map<string, QueuedRun>();
        for (const { name: number, event } of plan) {
          const name = `r${number}`;
          const made = run(name, {
            box: number % 2 === 0 ? 'a' : 'b',
            agent: number % 3 === 0 ? 'x' : 'y',
            session: `s-${number % 5}`,
            acceptedAt: number,
          });
          if (event === 'end') {
            known.delete(name);
            working.delete(name);
            queue.update(name, undefined);
          } else if (event === 'seen' && working.has(name)) queue.update(name, { ...made, working: true });
          else if (!working.has(name) || event === 'lag') {
            if (working.has(name) && !queue.hasReservation(name, made.uid)) continue;
            known.set(name, made);
            queue.update(name, made);
          }
          for (const admitted of queue.admitNext()) working.set(admitted, known.get(admitted) as QueuedRun);
          expectWithinLimits([...working.values()]);
          for (const waiting of known.keys()) {
            if (!working.has(waiting))
              expect(queue.reasonFor(waiting)).toMatch(/^(SessionBusy|BoxLimit|InstallationLimit)$/);
          }
        }
        expect(queue.counts('a').running + queue.counts('b').running).toBe(working.size);
      }),
      { numRuns: 300 },
    );
  });

  function expectWithinLimits(working: readonly QueuedRun[]): void {
    expect(working.length).toBeLessThanOrEqual(6);
    for (const box of ['a', 'b']) expect(working.filter((one) => one.box === box).length).toBeLessThanOrEqual(4);
    expect(new Set(working.map(({ session }) => session)).size).toBe(working.length);
  }
});
