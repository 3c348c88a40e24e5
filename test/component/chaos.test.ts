/** The pure parts of `make chaos`: when faults come, what is counted, and what breaks a promise. */
import * as fc from '../builders/properties.js';
import { randomUUID } from 'node:crypto';
import { marksIn, parseRuns, runScript } from '../chaos/cluster.js';
import { MarkServer, isOwnAddress, marksByRun } from '../chaos/marks.js';
import { planFaults } from '../chaos/plan.js';
import { isLoopback, readSettings } from '../chaos/settings.js';
import { judge, renderChecks } from '../chaos/verdict.js';
import type { Answer, Evidence, ObservedRun } from '../chaos/verdict.js';

describe('the plan of faults', () => {
  const options = { durationMs: 100_000, everyMs: 5_000, seed: 7, clusterFaults: true };

  it('brings every kind in its turn, the cluster seldom', () => {
    const faults = planFaults(options).map(({ fault }) => fault);
    expect(faults.slice(0, 14).join(' ')).toBe(
      'api gateway controller runner api gateway apiserver controller runner api gateway controller runner etcd',
    );
  });

  it('kills the processes of one round of pods and deletes the pods of the next', () => {
    const hows = planFaults(options).map(({ how }) => how);
    expect(hows.slice(0, 10).join(' ')).toBe('kill kill kill kill delete delete kill delete delete kill');
    expect(new Set(planFaults({ ...options, clusterFaults: false }).map(({ how }) => how))).toEqual(
      new Set(['delete']),
    );
  });

  it('kills only pods where components cannot be killed', () => {
    const faults = new Set(planFaults({ ...options, clusterFaults: false }).map(({ fault }) => fault));
    expect([...faults].sort()).toEqual(['api', 'controller', 'gateway', 'runner']);
  });

  it('is the same for the same seed, in order, about the interval apart, and over before the last webhook', () => {
    fc.assert(
      fc.property(
        fc.integer({ min: 0, max: 2 ** 32 - 1 }),
        fc.integer({ min: 1_000, max: 60_000 }),
        (seed, everyMs) => {
          const plan = planFaults({ durationMs: 300_000, everyMs, seed, clusterFaults: true });
          expect(planFaults({ durationMs: 300_000, everyMs, seed, clusterFaults: true })).toEqual(plan);
          const times = plan.map(({ atMs }) => atMs);
          for (const [index, at] of times.entries()) {
            const gap = at - (times[index - 1] ?? 0);
            expect(gap).toBeGreaterThan(everyMs * 0.45);
            expect(gap).toBeLessThan(everyMs * 1.55);
          }
          expect(Math.max(0, ...times)).toBeLessThan(300_000);
        },
      ),
      { numRuns: 50 },
    );
  });
});

describe('the settings', () => {
  it('have defaults', () => {
    expect(readSettings({})).toEqual({ hits: 200, rate: 2, faultSeconds: 5, drainMinutes: 30, seed: 1 });
  });

  it('are bounded in number and time', () => {
    const env = { CHAOS_HITS: '5001', CHAOS_RATE: '0', CHAOS_DRAIN_MINUTES: 'long', CHAOS_SEED: '3' };
    expect(() => readSettings(env)).toThrow(
      'CHAOS_HITS must be a number from 1 to 5000\nCHAOS_RATE must be a number from 0.1 to 50\nCHAOS_DRAIN_MINUTES must be a number from 1 to 120',
    );
  });
});

it.each([
  ['https://127.0.0.1:6443', true],
  ['http://localhost:8080/api/t/a/b/c', true],
  ['https://[::1]:6443', true],
  ['https://10.0.0.1:6443', false],
  ['https://127.0.0.1.example.com', false],
  ['https://agents.example.com', false],
])('%s is of this machine: %s', (url, expected) => expect(isLoopback(url)).toBe(expected));

it('reads runs as kubectl prints them', () => {
  const text = 'a-1   done      Completed   u1       a-1-x\na-2   running   BoxLimit    <none>   <none>\n';
  expect(parseRuns(text)).toEqual([
    { name: 'a-1', phase: 'done', reason: 'Completed', claim: { uid: 'u1', name: 'a-1-x' } },
    { name: 'a-2', phase: 'running', reason: 'BoxLimit', claim: undefined },
  ]);
});

it('finds each mark that an execution left', () => {
  expect(marksIn('{"stdout":"mark:a-1-x:\\n"}')).toEqual(['a-1-x']);
  expect(marksIn('mark:a-1-x: mark:a-1-y:')).toEqual(['a-1-x', 'a-1-y']);
  expect(marksIn('{"stderr":"no such file"}')).toEqual([]);
});

describe('marks outside', () => {
  it('are what runs post with the name of their pod and the id of the execution, each once', async () => {
    const server = await MarkServer.start('127.0.0.1');
    const post = (path: string, method = 'POST') => fetch(`${server.url}${path}`, { method });
    const [first, second, third] = [randomUUID(), randomUUID(), randomUUID()];
    await post(`a-1-x7/${first}`);
    await post(`a-1-x7/${first}`);
    await post(`a-1-y8/${second}`);
    await post(`a-2-z9/${third}`);
    await post(`A%20b/${randomUUID()}`);
    await post('a-3-x');
    await post(`a-3-x/${randomUUID()}`, 'GET');
    server.stop();
    expect(Object.fromEntries(marksByRun(server.pods))).toEqual({ 'a-1': ['a-1-x7', 'a-1-y8'], 'a-2': ['a-2-z9'] });
  });

  it('are left on this machine only', () => {
    expect([isOwnAddress('127.0.0.1'), isOwnAddress('192.0.2.1')]).toEqual([true, false]);
  });

  it('are made by the script of the run, before the mark in its transcript', () => {
    expect(runScript('http://127.0.0.1:80/mark/')).toBe(
      '/shell curl --silent --max-time 15 --retry 5 --retry-all-errors --request POST ' +
        'http://127.0.0.1:80/mark/$(cat /etc/hostname)/$(cat /proc/sys/kernel/random/uuid); ' +
        'echo "mark:$(cat /etc/hostname):"\n/say done',
    );
    expect(runScript(undefined)).toBe('/shell echo "mark:$(cat /etc/hostname):"\n/say done');
  });
});

describe('the verdict', () => {
  function observed(name: string, more: Partial<ObservedRun> = {}): ObservedRun {
    const claimPods = [{ uid: `uid-${name}`, name: `${name}-x` }];
    return { name, phase: 'done', reason: 'Completed', claimPods, marks: [`${name}-x`], ...more };
  }
  const accepted = (runId: string): Answer => ({ kind: 'accepted', runId });
  const unanswered: Answer = { kind: 'unanswered' };
  const good: Evidence = {
    answers: [accepted('a'), accepted('b'), unanswered, { kind: 'refused', status: 503 }],
    runs: [
      observed('a'),
      observed('b', { phase: 'error', reason: 'PodDeleted', marks: [] }),
      observed('c', { phase: 'cancelled', reason: 'Cancelled', claimPods: [], marks: [] }),
    ],
    fireCountBefore: 10,
    fireCountAfter: 13,
  };
  const broken = (evidence: Partial<Evidence>) =>
    judge({ ...good, ...evidence })
      .filter(({ holds }) => !holds)
      .map(({ promise, found }) => `${promise}: ${found}`);

  it('holds for what the promises allow: surplus of unanswered requests, killed and cancelled runs', () => {
    expect(broken({})).toEqual([]);
  });

  it.each<[string, Partial<Evidence>, string[]]>([
    ['a 202 without a run', { answers: [...good.answers, accepted('lost')] }, ['every 202 is an AgentRun: not: lost']],
    ['the same id twice', { answers: [...good.answers, accepted('a')] }, ['no two answers name the same run: not: a']],
    [
      'a run that hangs',
      { runs: [observed('a'), observed('b'), observed('c', { phase: 'running', marks: [] })] },
      ['every AgentRun has ended: not: c'],
    ],
    ['a fire that is not counted', { fireCountAfter: 12 }, ['fireCount grew by the AgentRuns: 2 fires, 3 runs']],
    [
      'more runs than anybody asked for',
      { answers: [accepted('a'), accepted('b')] },
      ['runs that nobody was told of ≤ requests without an answer: 1 runs, 0 requests'],
    ],
    [
      'two claims',
      {
        runs: [
          observed('a', { claimPods: [...observed('a').claimPods, { uid: 'uid-2', name: 'a-y' }] }),
          observed('b'),
          observed('c'),
        ],
      },
      ['no run had two claims: not: a'],
    ],
    [
      'two executions',
      { runs: [observed('a', { marks: ['a-x', 'a-x'] }), observed('b'), observed('c')] },
      ['no run was executed twice: at most one mark, of the pod that claimed it: not: a'],
    ],
    [
      'an execution in a pod that never claimed the run',
      { runs: [observed('a', { marks: ['a-y'] }), observed('b'), observed('c')] },
      ['no run was executed twice: at most one mark, of the pod that claimed it: not: a'],
    ],
    [
      'two marks outside, also when the transcript knows one',
      { runs: [observed('a', { outside: ['a-x', 'a-y'] }), observed('b'), observed('c')] },
      [
        'no run was executed twice: at most one mark outside: not: a',
        'every run that is done left its mark outside: not: a',
      ],
    ],
    [
      'a mark outside of a pod that never claimed the run',
      { runs: [observed('a', { phase: 'error', outside: ['a-y'] }), observed('b'), observed('c')] },
      ['no run was executed twice: at most one mark outside: not: a'],
    ],
    [
      'a run that is done without a mark outside',
      { runs: [observed('a', { outside: [] }), observed('b'), observed('c')] },
      ['every run that is done left its mark outside: not: a'],
    ],
    [
      'a run that is done and did nothing',
      { runs: [observed('a', { marks: [] }), observed('b'), observed('c')] },
      ['every run that is done left its mark: not: a'],
    ],
    [
      'an error without a reason',
      { runs: [observed('a', { phase: 'error', reason: '' }), observed('b'), observed('c')] },
      ['every run that failed says why: not: a'],
    ],
  ])('is broken by %s', (_what, evidence, expected) => {
    expect(broken(evidence)).toEqual(expected);
  });

  it('is printed as a table', () => {
    const [first] = renderChecks(judge({ ...good, runs: [] })).split('\n');
    expect(first).toMatch(/^BROKEN {2}every 202 is an AgentRun +not: a, b$/);
  });
});
