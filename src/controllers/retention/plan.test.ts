import * as fc from '../../../test/builders/properties.js';
import { HELD_MS, planRetention } from './plan.js';
import type { FinishedRun, RetentionLimits } from './plan.js';

const HOUR = 3_600_000;
const NOW = Date.parse('2026-06-01T00:00:00Z');

const LIMITS: RetentionLimits = {
  runsPerAgent: 2,
  minAgeMs: 24 * HOUR,
  maxAgeMs: 720 * HOUR,
  maxFinished: 6,
  boxBytes: 100,
  installationBytes: 250,
};

/** A run that ended so many hours ago. */
function run(name: string, hours: number, more: Partial<FinishedRun> = {}): FinishedRun {
  const namespace = more.namespace ?? 'bw-dev';
  return {
    key: `${namespace}/${name}`,
    namespace,
    finishedAt: NOW - hours * HOUR,
    sessionOpen: false,
    storedBytes: 0,
    fixedBytes: 0,
    ...more,
    agent: `${namespace}/${more.agent ?? 'ada'}`,
  };
}

function planned(runs: FinishedRun[], limits: Partial<RetentionLimits> = {}): string[] {
  const { actions } = planRetention(runs, { ...LIMITS, ...limits }, NOW);
  return actions.map(({ do: what, key, rule }) => `${what} ${key.split('/')[1]} ${rule}`);
}

describe('finished runs that go', () => {
  it.each<[string, FinishedRun[], string[]]>([
    ['nothing within the limits', [run('a', 700), run('b', 25)], []],
    [
      'those beyond the newest of their agent that are older than a day, the oldest first',
      [run('new', 1), run('b', 30), run('d', 50), run('c', 40)],
      ['remove d per-agent', 'remove c per-agent'],
    ],
    [
      'none that is younger than a day, however many there are',
      [run('a', 1), run('b', 2), run('c', 23), run('d', 24)],
      [],
    ],
    ['the newest of each agent are counted apart', [run('a', 30), run('b', 40), run('c', 50, { agent: 'bob' })], []],
    [
      'agents of one name in two Boxes are two agents',
      [run('a', 30), run('b', 40), run('c', 50, { namespace: 'bw-other' })],
      [],
    ],
    ['every one that is older than 30 days', [run('a', 721), run('b', 720)], ['remove a age']],
    [
      'none of an open session, in which the next run needs them',
      [run('a', 800, { sessionOpen: true }), run('b', 30), run('c', 40), run('d', 50, { sessionOpen: true })],
      [],
    ],
    [
      'the oldest of the installation above its maximum',
      Array.from({ length: 8 }, (_, i) => run(`r${i}`, 2 + i, { agent: `a${i}` })),
      ['remove r7 installation', 'remove r6 installation'],
    ],
    [
      'above the maximum also those of open sessions, after all others',
      Array.from({ length: 8 }, (_, i) => run(`r${i}`, 2 + i, { agent: `a${i}`, sessionOpen: i > 0 })),
      ['remove r0 installation', 'remove r7 installation'],
    ],
    [
      'none within an hour of its end, although there are too many',
      Array.from({ length: 8 }, (_, i) => run(`r${i}`, i === 0 ? 1 : 0.9, { agent: `a${i}` })),
      ['remove r0 installation'],
    ],
  ])('%s', (_sentence, runs, actions) => {
    expect(planned(runs)).toEqual(actions);
  });

  it('counts what is held, for the alert', () => {
    const runs = Array.from({ length: 9 }, (_, i) => run(`r${i}`, 0.5, { agent: `a${i}` }));
    expect(planRetention(runs, LIMITS, NOW)).toMatchObject({ actions: [], held: 3 });
  });
});

describe('stored inputs and transcripts that go', () => {
  it.each<[string, FinishedRun[], string[]]>([
    ['nothing within the limits', [run('a', 2, { storedBytes: 100 })], []],
    [
      'the oldest of the Box, as many as needed',
      [run('a', 3, { storedBytes: 60 }), run('b', 2, { storedBytes: 60 }), run('c', 1, { storedBytes: 40 })],
      ['expire a box-bytes'],
    ],
    [
      'nothing of another Box',
      [run('a', 3, { storedBytes: 90 }), run('b', 2, { storedBytes: 90, namespace: 'bw-other' })],
      [],
    ],
    [
      'open sessions have room of their own',
      [
        run('a', 5, { storedBytes: 100, sessionOpen: true }),
        run('b', 4, { storedBytes: 60 }),
        run('c', 3, { storedBytes: 60 }),
      ],
      ['expire b box-bytes'],
    ],
    [
      'open sessions lose the oldest too when their own room is full',
      [run('a', 5, { storedBytes: 70, sessionOpen: true }), run('b', 4, { storedBytes: 70, sessionOpen: true })],
      ['expire a box-bytes'],
    ],
    [
      'the oldest of the installation, open sessions last',
      [
        run('open', 9, { storedBytes: 90, sessionOpen: true }),
        run('a', 5, { storedBytes: 90 }),
        run('b', 4, { storedBytes: 90, namespace: 'bw-other' }),
        run('c', 3, { storedBytes: 90, namespace: 'bw-third' }),
      ],
      ['expire a installation-bytes', 'expire b installation-bytes'],
    ],
    [
      'with a long message the whole run, oldest first',
      [
        run('a', 3, { storedBytes: 10, fixedBytes: 50 }),
        run('b', 2, { storedBytes: 60 }),
        run('c', 1, { fixedBytes: 30 }),
      ],
      ['remove a box-bytes'],
    ],
    [
      'of the installation as well',
      [
        run('a', 5, { fixedBytes: 90 }),
        run('b', 4, { storedBytes: 90, namespace: 'bw-other' }),
        run('c', 3, { fixedBytes: 90, namespace: 'bw-third' }),
      ],
      ['remove a installation-bytes'],
    ],
    [
      'neither the run nor anything else for a long message within an hour of its end, or of an open session',
      [
        run('a', 0.5, { fixedBytes: 900 }),
        run('b', 3, { fixedBytes: 900, sessionOpen: true }),
        run('c', 2, { storedBytes: 90 }),
      ],
      [],
    ],
    [
      'nothing of a run that is removed as a whole',
      [run('old', 800, { storedBytes: 90 }), run('b', 2, { storedBytes: 90 })],
      ['remove old age'],
    ],
  ])('%s', (_sentence, runs, actions) => {
    expect(planned(runs)).toEqual(actions);
  });
});

describe('whatever is stored', () => {
  const finished = fc
    .array(
      fc.record({
        agent: fc.constantFrom('ada', 'bob'),
        namespace: fc.constantFrom('bw-a', 'bw-b', 'bw-c', 'bw-d'),
        finishedAt: fc.integer({ min: NOW - 900 * HOUR, max: NOW }),
        sessionOpen: fc.boolean(),
        storedBytes: fc.integer({ min: 0, max: 60 }),
        fixedBytes: fc.constantFrom(0, 0, 40),
      }),
      { maxLength: 60 },
    )
    .map((runs) =>
      runs.map((one, i) => ({ ...one, agent: `${one.namespace}/${one.agent}`, key: `${one.namespace}/r${i}` })),
    );

  it('what is left fits, the youngest and the open ones stay longest, and nothing goes twice', () => {
    fc.assert(
      fc.property(finished, (runs) => {
        const { actions, held } = planRetention(runs, LIMITS, NOW);
        expect(new Set(actions.map(({ key }) => key)).size).toBe(actions.length);
        const removed = new Set(actions.filter((action) => action.do === 'remove').map(({ key }) => key));
        const expired = new Set(actions.filter((action) => action.do === 'expire').map(({ key }) => key));
        const left = runs.filter(({ key }) => !removed.has(key));
        expect(left.length).toBeLessThanOrEqual(LIMITS.maxFinished + held);
        for (const one of runs) if (NOW - one.finishedAt < HELD_MS) expect(removed.has(one.key)).toBe(false);
        const fixed = ({ sessionOpen, finishedAt, fixedBytes }: FinishedRun) =>
          sessionOpen || NOW - finishedAt < HELD_MS ? 0 : fixedBytes;
        const bytes = (some: FinishedRun[]) =>
          some.reduce((sum, one) => sum + (expired.has(one.key) ? 0 : one.storedBytes) + fixed(one), 0);
        expect(bytes(left)).toBeLessThanOrEqual(LIMITS.installationBytes);
        for (const namespace of ['bw-a', 'bw-b', 'bw-c', 'bw-d']) {
          for (const open of [true, false]) {
            const part = left.filter((one) => one.namespace === namespace && one.sessionOpen === open);
            expect(bytes(part)).toBeLessThanOrEqual(LIMITS.boxBytes);
            const stays = part.filter(({ key, storedBytes }) => storedBytes > 0 && !expired.has(key));
            const goes = part.filter(({ key }) => expired.has(key));
            const oldestStaying = Math.min(...stays.map(({ finishedAt }) => finishedAt));
            for (const one of goes) expect(one.finishedAt).toBeLessThanOrEqual(oldestStaying);
          }
        }
        const again = planRetention(
          left.map((one) => (expired.has(one.key) ? { ...one, storedBytes: 0 } : one)),
          LIMITS,
          NOW,
        );
        expect(again.actions).toEqual([]);
      }),
      { numRuns: 300 },
    );
  });
});
