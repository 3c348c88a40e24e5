import type { AgentRun } from '../../api/v1alpha1/agent-run.js';
import { makeRun } from '../../../test/builders/run-objects.js';
import { finishedRuns, fixedBytesOf, storedBytesOf } from './stored.js';
import { projectControllerRun } from '../../projections/agent-run.js';

const NOW = Date.parse('2026-01-02T00:00:00Z');
const DONE = { phase: 'done', usageFinal: true, finishedAt: '2026-01-01T12:00:00Z' } as const;
const QUESTION = { kind: 'question', text: 'Which one?', callId: 'c1' } as const;

type Transcript = NonNullable<NonNullable<AgentRun['status']>['transcript']>;

describe('the stored bytes of a run', () => {
  it.each<[string, Transcript | undefined, number]>([
    ['are those of its chunks as they are stored', { state: 'full', chunks: 2, bytes: 9000, storedBytes: 700 }, 700],
    ['are estimated from above without a stored size', { state: 'truncated', chunks: 1, bytes: 3000 }, 4000],
    ['are at most what its chunks can hold', { state: 'full', chunks: 1, bytes: 1_000_000 }, 131_072],
    ['are none after the transcript has gone', { state: 'expired', chunks: 3, bytes: 9, storedBytes: 9 }, 0],
    ['are none when it is in the archive', { state: 'archived', chunks: 3, bytes: 9, storedBytes: 9 }, 0],
    ['are none without a transcript', undefined, 0],
  ])('%s', (_sentence, transcript, bytes) => {
    expect(
      storedBytesOf(makeRun('r', { status: { ...DONE, ...(transcript === undefined ? {} : { transcript }) } })),
    ).toBe(bytes);
  });

  it('contain the data of its input, but not a short message', () => {
    const input = { encoding: 'gzip', bytes: 9000, sha256: 'aa', data: 'x'.repeat(500) } as const;
    expect(storedBytesOf(projectControllerRun(makeRun('r', { spec: { input }, status: DONE })))).toBe(500);
    expect(storedBytesOf(projectControllerRun(makeRun('r', { status: DONE })))).toBe(0);
  });
});

it('a message that only a manifest can hold inline goes with its run, and counts in bytes', () => {
  const fixed = (message: string) =>
    fixedBytesOf(projectControllerRun(makeRun('r', { spec: { message }, status: DONE })));
  expect(fixed('é'.repeat(2048))).toBe(0);
  expect(fixed('é'.repeat(2049))).toBe(4098);
  const run = projectControllerRun(makeRun('r', { spec: { message: 'x'.repeat(5000) }, status: DONE }));
  expect(finishedRuns([run], NOW)).toMatchObject([{ storedBytes: 0, fixedBytes: 5000 }]);
  expect(JSON.stringify(run)).not.toContain('xxx');
});

describe('the sessions that are open', () => {
  const of = (...runs: AgentRun[]) =>
    finishedRuns(runs.map(projectControllerRun), NOW).map(
      ({ key, sessionOpen }) => `${key.split('/')[1]} ${sessionOpen}`,
    );
  const at = (second: number, sessionId = 's') => ({ sessionId, createdAt: `2026-01-01T00:00:0${second}.000Z` });

  it.each<[string, AgentRun[], string[]]>([
    [
      'those in which a run waits or works',
      [makeRun('a', { spec: at(0), status: DONE }), makeRun('b', { spec: at(1) })],
      ['a true'],
    ],
    [
      'no other ones',
      [makeRun('a', { spec: at(0), status: DONE }), makeRun('b', { spec: at(1, 'other') })],
      ['a false'],
    ],
    [
      'those that wait for an answer',
      [
        makeRun('a', { spec: at(0), status: DONE }),
        makeRun('b', { spec: at(1), status: { ...DONE, pending: QUESTION } }),
      ],
      ['a true', 'b true'],
    ],
    [
      'none whose question was answered by a later run',
      [
        makeRun('b', { spec: at(2), status: DONE }),
        makeRun('a', { spec: at(1), status: { ...DONE, pending: QUESTION } }),
      ],
      ['b false', 'a false'],
    ],
  ])('are %s', (_sentence, runs, expected) => {
    expect(of(...runs)).toEqual(expected);
  });

  it('leave out runs that are being deleted', () => {
    const going = makeRun('a', { metadata: { deletionTimestamp: '2026-01-01T13:00:00Z' }, status: DONE });
    expect(of(going)).toEqual([]);
  });
});
