/**
 * Roll-up is exact: property tests with crashes between any two writes, two controllers and caches that lag.
 * The recording API plays etcd; each round of the property is one controller that works with what an old cache shows.
 */
import { recordingLog } from '../../../test/builders/log.js';
import { jest } from '@jest/globals';
import * as fc from '../../../test/builders/properties.js';
import { AgentRuns } from '../../api/v1alpha1/agent-run.js';
import type { AgentRun } from '../../api/v1alpha1/agent-run.js';
import { AgentTriggers } from '../../api/v1alpha1/agent-trigger.js';
import { Agents } from '../../api/v1alpha1/agent.js';
import { Boxes } from '../../api/v1alpha1/box.js';
import { Workspaces } from '../../api/v1alpha1/workspace.js';
import { FINALIZER_ROLL_UP } from '../../api/labels.js';
import { objectKey } from '../../api/meta.js';
import type { KubeObject, ResourceType } from '../../api/meta.js';
import { KubeApiError, isConflict, isNotFound } from '../../kube/errors.js';
import { isCounted, isReleased, totalsOf } from '../../run/usage/totals.js';
import { FoldedTotals } from '../../api/v1alpha1/common.js';
import { RecordingApi } from '../../../test/builders/recording-api.js';
import {
  NAMESPACE,
  makeAgent,
  makeBox,
  makeRun,
  makeTrigger,
  makeWorkspace,
} from '../../../test/builders/run-objects.js';
import { systemClock } from '../../runtime/clock.js';
import { RunWriter } from '../agent-run/run-writer.js';
import { RollUp, countedRun, ownersOf } from './roll-up.js';
import { RollUpSweep } from './sweep.js';

const SIGNAL = new AbortController().signal;
const DELETED = '2026-01-01T00:10:00Z';

function endedRun(name: string, inputTokens: number): AgentRun {
  return makeRun(name, {
    metadata: { deletionTimestamp: DELETED },
    spec: { trigger: { origin: 'trigger', name: 'push', uid: 'uid-trigger' } },
    status: {
      phase: 'done',
      usageFinal: true,
      usage: { steps: 1, inputTokens, outputTokens: 1, totalTokens: inputTokens + 1, costUsd: '0.000010' },
    },
  });
}

function seedOwners(api: RecordingApi): void {
  api.seed(Workspaces, makeWorkspace());
  api.seed(Boxes, makeBox());
  api.seed(Agents, makeAgent());
  api.seed(AgentTriggers, makeTrigger());
}

const OWNERS: [ResourceType<KubeObject & { status?: { folded?: unknown; folding?: string[] | undefined } }>, string][] =
  [
    [AgentTriggers, `${NAMESPACE}/ada.push`],
    [Agents, `${NAMESPACE}/ada`],
    [Boxes, 'dev'],
    [Workspaces, 'acme'],
  ];

const rollUpOf = (api: Pick<RecordingApi, 'get' | 'patch'>) => new RollUp(api, () => Promise.resolve('acme'));

async function rollUpAndRelease(api: RecordingApi, rollUp: RollUp, run: AgentRun): Promise<void> {
  await rollUp.add(run, SIGNAL);
  await new RunWriter(api, systemClock, recordingLog().log).release(run, SIGNAL);
}

describe('folding one run', () => {
  it('reads and writes each owner once, then lets the run go', async () => {
    const api = new RecordingApi();
    seedOwners(api);
    const run = api.seed(AgentRuns, endedRun('ada-1', 7));
    await rollUpAndRelease(api, rollUpOf(api), run);
    expect(api.writes.map(({ verb, resource }) => `${verb} ${resource}`)).toEqual([
      'patch agenttriggers/status',
      'patch agents/status',
      'patch boxes/status',
      'patch workspaces/status',
      'patch agentruns',
    ]);
    for (const [type, key] of OWNERS) {
      expect(api.peek(type, key)?.status).toMatchObject({
        folded: {
          runs: 1,
          inputTokens: 7,
          outputTokens: 1,
          costMicroUsd: 10,
          lastRunAt: '2026-01-01T00:00:00.000Z',
        },
        folding: [run.metadata.uid],
      });
    }
    expect(api.all(AgentRuns)).toEqual([]);
  });

  it('leaves other fields of the status alone', async () => {
    const api = new RecordingApi();
    seedOwners(api);
    const run = api.seed(AgentRuns, endedRun('ada-1', 7));
    await rollUpOf(api).add(run, SIGNAL);
    expect(api.peek(Agents, `${NAMESPACE}/ada`)?.status?.active).toBe(true);
  });

  it('writes many runs of one owner at once', async () => {
    const api = new RecordingApi();
    seedOwners(api);
    const runs = Array.from({ length: 50 }, (_, i) => api.seed(AgentRuns, endedRun(`ada-${i}`, 1)));
    const rollUp = rollUpOf(api);
    await Promise.all(runs.map((run) => rollUp.add(run, SIGNAL)));
    const boxWrites = api.writes.filter(({ resource }) => resource === 'boxes/status');
    expect(boxWrites.length).toBeLessThanOrEqual(2);
    expect(api.peek(Boxes, 'dev')?.status?.folded?.runs).toBe(50);
  });

  describe('of a batch', () => {
    /** Three runs at once; the second one's time is over while the owners are read. */
    async function rollUpThree(abort: (signals: AbortController[]) => void) {
      const api = new RecordingApi();
      seedOwners(api);
      const runs = ['ada-1', 'ada-2', 'ada-3'].map((name) => api.seed(AgentRuns, endedRun(name, 1)));
      const controllers = runs.map(() => new AbortController());
      const get = api.get.bind(api);
      let reads = 0;
      const rollUp = rollUpOf({
        get: (type, ref, options) => {
          const answer = get(type, ref, options);
          // The first write takes the first run alone; the others wait for it and go together.
          if (type.plural === Workspaces.plural && (reads += 1) === 2) abort(controllers);
          return answer;
        },
        patch: api.patch.bind(api),
      });
      const results = await Promise.allSettled(runs.map((run, i) => rollUp.add(run, controllers[i]?.signal ?? SIGNAL)));
      return { api, results: results.map(({ status }) => status) };
    }

    it('one run that waits no longer fails alone', async () => {
      const { api, results } = await rollUpThree(([, second]) => second?.abort(new Error('too late')));
      expect(results).toEqual(['fulfilled', 'rejected', 'fulfilled']);
      for (const [type, key] of OWNERS) expect(api.peek(type, key)?.status?.folding).toContain('uid-ada-3');
    });

    it('nothing goes on when nobody waits any more', async () => {
      const { api, results } = await rollUpThree((all) => all.forEach((one) => one.abort(new Error('stopped'))));
      // The first one had its write already.
      expect(results).toEqual(['fulfilled', 'rejected', 'rejected']);
      expect(api.peek(Workspaces, 'acme')?.status?.folding ?? []).not.toContain('uid-ada-3');
    });
  });

  it('counts as done for an owner that is gone or has another UID', async () => {
    const api = new RecordingApi();
    seedOwners(api);
    api.vanish(Workspaces, 'acme');
    api.vanish(Agents, `${NAMESPACE}/ada`);
    api.seed(Agents, { ...makeAgent(), metadata: { ...makeAgent().metadata, uid: 'uid-of-a-successor' } });
    const run = api.seed(AgentRuns, endedRun('ada-1', 7));
    await rollUpAndRelease(api, rollUpOf(api), run);
    expect(api.peek(Agents, `${NAMESPACE}/ada`)?.status?.folded).toBeUndefined();
    expect(api.all(AgentRuns)).toEqual([]);
  });

  it('does not count a run that is gone, whatever an old cache shows', async () => {
    const api = new RecordingApi();
    seedOwners(api);
    const run = api.seed(AgentRuns, endedRun('ada-1', 7));
    await rollUpAndRelease(api, rollUpOf(api), run);
    for (const [type, key] of OWNERS) api.seed(type, { ...withoutFolding(api, type, key) });
    api.clearRecords();
    await rollUpAndRelease(api, rollUpOf(api), run);
    expect(api.writes.map(({ resource }) => resource)).toEqual(['agentruns']);
    expect(api.peek(Boxes, 'dev')?.status?.folded?.runs).toBe(1);
  });

  it('goes on with absurd counts: the sums stop at what a status can hold', async () => {
    const api = new RecordingApi();
    seedOwners(api);
    const runs = ['ada-1', 'ada-2'].map((name) => api.seed(AgentRuns, endedRun(name, Number.MAX_SAFE_INTEGER)));
    for (const run of runs) await rollUpAndRelease(api, rollUpOf(api), run);
    for (const [type, key] of OWNERS) {
      const status = api.peek(type, key)?.status;
      expect(FoldedTotals.safeParse(status?.folded).error).toBeUndefined();
      expect(status).toMatchObject({ folded: { runs: 2, inputTokens: Number.MAX_SAFE_INTEGER } });
    }
    expect(api.all(AgentRuns)).toEqual([]);
  });

  it('goes on without sums that the API server finds invalid, and logs it', async () => {
    const api = new RecordingApi();
    seedOwners(api);
    const run = api.seed(AgentRuns, endedRun('ada-1', 7));
    const details = { causes: [{ field: 'status.folded.inputTokens' }] };
    const error = new KubeApiError({ status: 422, reason: 'Invalid', message: 'too large', details });
    api.failNext({ verb: 'patch', resource: 'workspaces/status', error });
    const warn = jest.fn();
    await rollUpAndRelease(api, new RollUp(api, () => Promise.resolve('acme'), { warn }), run);
    expect(warn.mock.calls).toMatchObject([[{ kind: 'Workspace', name: 'acme' }, expect.any(String)]]);
    expect(api.peek(Workspaces, 'acme')?.status).toMatchObject({ folding: [run.metadata.uid] });
    expect(api.peek(Boxes, 'dev')?.status?.folded?.inputTokens).toBe(7);
    expect(api.all(AgentRuns)).toEqual([]);
  });

  it('does not count a run again that others hold and that left folding', async () => {
    const api = new RecordingApi();
    seedOwners(api);
    const ended = endedRun('ada-1', 7);
    const finalizers = [...(ended.metadata.finalizers ?? []), 'x.example/y'];
    const run = api.seed(AgentRuns, { ...ended, metadata: { ...ended.metadata, finalizers } });
    await rollUpAndRelease(api, rollUpOf(api), run);
    await sweepAll(api);
    await rollUpOf(api).add(run, SIGNAL);
    for (const [type, key] of OWNERS) {
      expect(api.peek(type, key)?.status).toMatchObject({ folded: { runs: 1, inputTokens: 7 }, folding: [] });
    }
    expect(api.all(AgentRuns)).toHaveLength(1);
  });

  it('adds a run to the runs above it that are there, and to no other total twice', async () => {
    const api = new RecordingApi();
    seedOwners(api);
    const callers = ['top', 'middle', 'gone'].map((name) => ({ name, uid: `uid-${name}` }));
    api.seed(AgentRuns, makeRun('top'));
    api.seed(AgentRuns, makeRun('middle', { status: { phase: 'done' } }));
    const parent = { name: 'gone', uid: 'uid-gone', depth: 3, agents: [], waits: true, callers };
    const ended = endedRun('ada-1', 7);
    const run = api.seed(AgentRuns, { ...ended, spec: { ...ended.spec, parent } });
    await rollUpAndRelease(api, rollUpOf(api), run);
    for (const name of ['top', 'middle']) {
      expect(api.peek(AgentRuns, `${NAMESPACE}/${name}`)?.status).toMatchObject({
        folded: { runs: 1, inputTokens: 7, outputTokens: 1, costMicroUsd: 10 },
        folding: ['uid-ada-1'],
      });
    }
    expect(api.peek(Boxes, 'dev')?.status?.folded).toMatchObject({ runs: 1, inputTokens: 7 });
  });

  it('names no trigger for a chat, and no agent when it is not known', () => {
    const run = makeRun('ada-1', { spec: { trigger: { origin: 'chat' } } });
    delete run.spec.agentUid;
    expect(ownersOf(run, 'dev', 'acme').map(({ type }) => type.kind)).toEqual(['Box', 'Workspace']);
  });
});

function withoutFolding(api: RecordingApi, type: ResourceType, key: string): KubeObject {
  const owner = structuredClone(api.peek(type, key)) as KubeObject & { status: { folding?: string[] } };
  owner.status.folding = [];
  return owner;
}

/** One controller's attempt. `failAt`: which of its calls fails, and whether the write happened before. */
interface Attempt {
  run: number;
  failAt: number;
  afterWrite: boolean;
  /** Another controller does all of its work in the middle of this attempt, before this call. */
  otherAt: number;
}

const ATTEMPT = {
  run: fc.nat(2),
  failAt: fc.integer({ min: 0, max: 20 }),
  afterWrite: fc.boolean(),
  otherAt: fc.integer({ min: 0, max: 20 }),
};
const attempts = fc.array(fc.record(ATTEMPT), { maxLength: 12 });

class Crash extends Error {}

/** An API client that dies at a call, and in front of which another controller may work. */
function unreliable(api: RecordingApi, attempt: Attempt, other: () => Promise<void>) {
  let calls = 0;
  const call = async <T>(act: () => Promise<T>): Promise<T> => {
    calls += 1;
    if (calls === attempt.otherAt) await other();
    if (calls !== attempt.failAt) return await act();
    if (attempt.afterWrite) await act();
    throw new Crash();
  };
  return {
    get: <T extends KubeObject>(type: ResourceType<T>, ref: { name: string }) => call(() => api.get(type, ref)),
    patch: ((...all: Parameters<RecordingApi['patch']>) => call(() => api.patch(...all))) as RecordingApi['patch'],
    delete: (...all: Parameters<RecordingApi['delete']>) => call(() => api.delete(...all)),
  };
}

async function tolerate(work: Promise<unknown>): Promise<void> {
  try {
    await work;
  } catch (error) {
    if (!(error instanceof Crash) && !isConflict(error) && !isNotFound(error)) throw error;
  }
}

/** Takes gone UIDs out of every owner, as the totals controller does. */
async function sweepAll(api: RecordingApi): Promise<void> {
  const sweep = new RollUpSweep({
    api,
    clock: { after: () => () => undefined },
    namespace: 'boxwright',
    runs: {
      waitForResourceVersion: () => Promise.resolve(true),
      holds: (uid) => api.all(AgentRuns).some((run) => run.metadata.uid === uid && !isReleased(run)),
    },
  });
  for (const [type, key] of OWNERS) {
    const owner = api.peek(type, key);
    const folding = owner?.status?.folding ?? [];
    const gone = await sweep.confirmGone(`${type.plural}:${key}`, folding, SIGNAL);
    if (owner === undefined || gone.size === 0) continue;
    const body = {
      metadata: { resourceVersion: owner.metadata.resourceVersion },
      status: { folding: folding.filter((uid) => !gone.has(uid)) },
    };
    const ref = {
      name: owner.metadata.name,
      ...(owner.metadata.namespace === undefined ? {} : { namespace: NAMESPACE }),
    };
    await tolerate(api.patch(type, ref, body, { type: 'merge', subresource: 'status' }));
  }
}

/** One attempt that may die at a call, and the sweep after it. */
async function rollUpUnreliably(api: RecordingApi, run: AgentRun, flaky: ReturnType<typeof unreliable>): Promise<void> {
  const rollUp = new RollUp(flaky, () => Promise.resolve('acme'));
  await tolerate(
    rollUp.add(run, SIGNAL).then(() => new RunWriter(flaky, systemClock, recordingLog().log).release(run, SIGNAL)),
  );
  await sweepAll(api);
}

describe('folding with crashes, a second controller and old caches', () => {
  it('counts every run exactly once in every owner', async () => {
    await fc.assert(
      fc.asyncProperty(attempts, fc.nat(3), async (plan, foreign) => {
        const api = new RecordingApi();
        seedOwners(api);
        // What the controllers' caches show, for ever: they never learn that a run is gone. Others hold the first ones.
        const runs = [1, 10, 100].map((tokens, i) => {
          const ended = endedRun(`ada-${i}`, tokens);
          const finalizers = [...(ended.metadata.finalizers ?? []), ...(i < foreign ? ['x.example/y'] : [])];
          return api.seed(AgentRuns, { ...ended, metadata: { ...ended.metadata, finalizers } });
        });
        for (const attempt of plan) {
          const run = runs[attempt.run] as AgentRun;
          const other = async () => {
            await tolerate(rollUpAndRelease(api, rollUpOf(api), run));
            await sweepAll(api);
          };
          await rollUpUnreliably(api, run, unreliable(api, attempt, other));
        }
        for (const run of runs) await tolerate(rollUpAndRelease(api, rollUpOf(api), run));
        await sweepAll(api);
        for (const [type, key] of OWNERS) {
          expect(api.peek(type, key)?.status).toMatchObject({
            folded: { runs: 3, inputTokens: 111, outputTokens: 3, costMicroUsd: 30 },
            folding: [],
          });
        }
        expect(api.all(AgentRuns).map(({ metadata }) => metadata.finalizers)).toEqual(
          Array.from({ length: foreign }, () => ['x.example/y']),
        );
      }),
      { numRuns: 200 },
    );
  });
});

/** Around midnight and the end of a month, so that each run falls into other periods than the one before. */
const CLAIMED = ['2026-01-31T23:59:59Z', '2026-02-01T00:00:01Z', '2026-02-02T12:00:00Z'];

function usedRun(index: number, foreignFinalizers: string[]): AgentRun {
  const { metadata, ...run } = endedRun(`ada-${index}`, 10 ** index);
  const { deletionTimestamp: _deleted, ...kept } = metadata;
  const claim = { podUid: 'p', podName: 'p', at: CLAIMED[index] ?? '', gatewayPod: 'g', epoch: 1 };
  const finalizers = [...(kept.finalizers ?? []), ...foreignFinalizers];
  return { ...run, metadata: { ...kept, finalizers }, status: { ...run.status, claim } } as AgentRun;
}

const events = fc.array(fc.record({ what: fc.constantFrom('deletedByHand', 'folded'), ...ATTEMPT }), { maxLength: 16 });

describe('runs that people delete, at any time', () => {
  it('leave base and live runs adding up to the same at every moment, and the sums of days and months right', async () => {
    await fc.assert(
      fc.asyncProperty(events, fc.nat(3), async (plan, foreign) => {
        const api = new RecordingApi();
        seedOwners(api);
        const runs = [0, 1, 2].map((index) =>
          api.seed(AgentRuns, usedRun(index, index < foreign ? ['x.example/y'] : [])),
        );
        // What the controllers' caches show: a run that is gone stays in them as it was.
        const seen = (index: number): AgentRun => {
          const known = runs[index] as AgentRun;
          runs[index] = api.peek(AgentRuns, objectKey(known.metadata)) ?? known;
          return runs[index];
        };
        const expectWhole = () => {
          for (const [type, key] of OWNERS) {
            const { folded, folding } = api.peek(type, key)?.status ?? {};
            const totals = totalsOf(
              folded as FoldedTotals | undefined,
              folding,
              api.all(AgentRuns).filter(isCounted).map(countedRun),
            );
            expect(totals).toMatchObject({ runs: 3, inputTokens: 111, outputTokens: 3, costMicroUsd: 30 });
          }
        };
        const deleteByHand = ({ metadata: { name, namespace = '' } }: AgentRun) =>
          tolerate(api.delete(AgentRuns, { name, namespace }));
        for (const { what, ...attempt } of plan) {
          const run = seen(attempt.run);
          if (what === 'deletedByHand') await deleteByHand(run);
          else if (run.metadata.deletionTimestamp !== undefined) {
            const other = async () => tolerate(rollUpAndRelease(api, rollUpOf(api), run));
            await rollUpUnreliably(api, run, unreliable(api, attempt, other));
          }
          expectWhole();
        }
        for (const index of runs.keys()) {
          await deleteByHand(seen(index));
          await rollUpAndRelease(api, rollUpOf(api), seen(index));
          expectWhole();
        }
        for (const [type, key] of OWNERS) {
          const folded = api.peek(type, key)?.status?.folded as FoldedTotals | undefined;
          expect(folded?.periods).toEqual([
            { period: '2026-01-31', tokens: 2, costMicroUsd: 10 },
            { period: '2026-02-01', tokens: 11, costMicroUsd: 10 },
            { period: '2026-02-02', tokens: 101, costMicroUsd: 10 },
            { period: '2026-01', tokens: 2, costMicroUsd: 10 },
            { period: '2026-02', tokens: 112, costMicroUsd: 20 },
          ]);
        }
      }),
      { numRuns: 200 },
    );
  });
});

describe('the sweep', () => {
  const deps = (seen: string[], reached: boolean) => {
    const api = new RecordingApi();
    return {
      api,
      sweep: new RollUpSweep({
        api,
        clock: { after: () => () => undefined },
        namespace: 'boxwright',
        runs: { waitForResourceVersion: () => Promise.resolve(reached), holds: (uid: string) => seen.includes(uid) },
      }),
    };
  };

  it('confirms nothing while the cache of runs is behind the API server', async () => {
    const { sweep } = deps([], false);
    expect(await sweep.confirmGone('boxes:dev', ['a'], SIGNAL)).toEqual(new Set());
  });

  it('confirms what a cache that has caught up does not show, with one small read for all', async () => {
    const { sweep, api } = deps(['b'], true);
    expect(await sweep.confirmGone('boxes:dev', ['a', 'b', 'c'], SIGNAL)).toEqual(new Set(['a', 'c']));
    expect(api.reads).toHaveLength(1);
  });

  it('reads nothing while every run is still visible', async () => {
    const { sweep, api } = deps(['a'], true);
    expect(await sweep.confirmGone('boxes:dev', ['a'], SIGNAL)).toEqual(new Set());
    expect(api.reads).toEqual([]);
  });

  it('keeps the position that it read first, so that a slow watch gets there', async () => {
    const { sweep, api } = deps([], false);
    await sweep.confirmGone('boxes:dev', ['a'], SIGNAL);
    await sweep.confirmGone('boxes:dev', ['a'], SIGNAL);
    expect(api.reads).toHaveLength(1);
  });
});

test('a run keeps other finalizers when it is released', async () => {
  const api = new RecordingApi();
  const run = api.seed(AgentRuns, makeRun('ada-1', { metadata: { finalizers: ['x.example/y', FINALIZER_ROLL_UP] } }));
  await new RunWriter(api, systemClock, recordingLog().log).release(run, SIGNAL);
  expect(api.peek(AgentRuns, objectKey(run.metadata))?.metadata.finalizers).toEqual(['x.example/y']);
});
