import { recordingLog } from '../../../../test/builders/log.js';
import { AgentRuns } from '../../../api/v1alpha1/agent-run.js';
import type { AgentRun } from '../../../api/v1alpha1/agent-run.js';
import { Jobs } from '../../../kube/core-types.js';
import { FakeClock } from '../../../../test/builders/fake-clock.js';
import { RecordingApi } from '../../../../test/builders/recording-api.js';
import { NAMESPACE, makeBox, makeRun } from '../../../../test/builders/run-objects.js';
import type { RunState } from '../run-state.js';
import { RunWriter } from '../run-writer.js';
import { Settler } from './settle.js';
import { createTickGate } from '../../agent-schedule/tick-gate.js';
import type { AgentSchedule } from '../../../api/v1alpha1/agent-schedule.js';
import { projectControllerRun } from '../../../projections/agent-run.js';
import { projectControllerJob } from '../../../projections/job.js';

const KEY = `${NAMESPACE}/ada-1`;
const SIGNAL = new AbortController().signal;

/** An ended run with its Job, as an informer shows them that does not know of the next writes. */
function setUp() {
  const api = new RecordingApi();
  const clock = new FakeClock();
  const finishedAt = new Date(clock.now()).toISOString();
  const run = makeRun('ada-1', { status: { phase: 'done', reason: 'Completed', finishedAt, usageFinal: true } });
  const job = api.seed(Jobs, {
    apiVersion: 'batch/v1',
    kind: 'Job',
    metadata: { name: 'ada-1', namespace: NAMESPACE },
    spec: { template: { spec: {} } },
  });
  const state = { key: KEY, run, job: projectControllerJob(job), box: makeBox() } as RunState;
  const settler = new Settler(
    { clock, rollUp: () => Promise.resolve() },
    new RunWriter(api, clock, recordingLog().log),
  );
  return { api, state, settler };
}

test('the TTL of a Job is written once, however often the run is looked at before the cache shows it', async () => {
  const { api, state, settler } = setUp();
  for (let look = 0; look < 3; look++) await settler.settle(state, SIGNAL);
  expect(api.writes.map(({ verb, resource }) => `${verb} ${resource}`)).toEqual(['patch jobs']);
});

test('nothing is kept of a run that is gone', async () => {
  const { api, state, settler } = setUp();
  await settler.settle(state, SIGNAL);
  settler.forget(KEY);
  await settler.settle(state, SIGNAL);
  expect(api.writes).toHaveLength(2);
});

test('a TTL that could not be written is written at the next look', async () => {
  const { api, state, settler } = setUp();
  api.failNext({ verb: 'patch', resource: 'jobs', error: new Error('no answer') });
  await expect(settler.settle(state, SIGNAL)).rejects.toThrow('no answer');
  await settler.settle(state, SIGNAL);
  expect(api.peek(Jobs, KEY)?.spec.ttlSecondsAfterFinished).toBe(600);
});

test('usage that no gateway closes is closed after two minutes, also of a run that stays', async () => {
  const api = new RecordingApi();
  const clock = new FakeClock();
  const usage = { steps: 1, inputTokens: 10, outputTokens: 5, totalTokens: 15 };
  const ended = makeRun('ada-1', {
    metadata: { finalizers: ['boxwright.dev/fold'] },
    status: {
      phase: 'error',
      reason: 'NodeLost',
      finishedAt: new Date(clock.now()).toISOString(),
      claim: { podUid: 'p', podName: 'p', at: '2026-01-01T00:00:00.000Z', gatewayPod: 'g', epoch: 1 },
      usage,
      openCall: { inputTokens: 100, outputTokens: 50 },
    } as NonNullable<AgentRun['status']>,
  });
  const run = projectControllerRun(api.seed(AgentRuns, ended));
  const settler = new Settler(
    { clock, rollUp: () => Promise.resolve() },
    new RunWriter(api, clock, recordingLog().log),
  );
  const look = () => settler.settle({ run, box: makeBox(), key: KEY } as RunState, SIGNAL);

  expect(await look()).toEqual({ requeueAfterMs: 120_000 });
  expect(api.writes).toEqual([]);
  await clock.advance(120_000);
  expect(await look()).toEqual({});
  expect(api.peek(AgentRuns, KEY)?.status).toMatchObject({
    usageFinal: true,
    usage: { inputTokens: 110, outputTokens: 55, totalTokens: 165 },
  });
});

describe('a deleted run of a tick', () => {
  const TICK_RUN = {
    actor: 'schedule',
    trigger: { origin: 'schedule', name: 'daily', uid: 'uid-schedule' },
    createdAt: '2026-01-01T00:00:03.000Z',
  } as const;

  /** The run was accepted at 00:00:03; the clock stands at 00:00:05. */
  async function settle(status: AgentSchedule['status'], uid = 'uid-schedule', spec: object = TICK_RUN) {
    const clock = new FakeClock(Date.parse('2026-01-01T00:00:05.000Z'));
    const folded: string[] = [];
    const ended = makeRun('ada-1', {
      metadata: { deletionTimestamp: '2026-01-01T00:00:04Z', finalizers: ['boxwright.dev/fold'] },
      spec,
      status: { phase: 'cancelled', reason: 'Cancelled', finishedAt: '2026-01-01T00:00:04.000Z', usageFinal: true },
    });
    // As the controller's cache has it.
    const run = projectControllerRun(ended);
    const schedule = { metadata: { name: 'ada.daily', namespace: NAMESPACE, uid }, status } as AgentSchedule;
    const tickGate = createTickGate({ get: (key) => (key === `${NAMESPACE}/ada.daily` ? schedule : undefined) }, clock);
    const rollUp = () => {
      folded.push('rollUp');
      return Promise.resolve();
    };
    const writer = { release: () => Promise.resolve() } as unknown as RunWriter;
    const settler = new Settler({ clock, rollUp, tickGate }, writer);
    const state = { run, box: makeBox(), key: KEY } as RunState;
    const first = await settler.settle(state, SIGNAL);
    await clock.advance(600_000);
    const late = folded.length > 0 ? first : await settler.settle(state, SIGNAL);
    return { first, late, folded: folded.length };
  }

  test('stays until the schedule has noted the tick, and not beyond the starting deadline', async () => {
    expect(await settle(undefined)).toEqual({ first: { requeueAfterMs: 1000 }, late: {}, folded: 1 });
    expect(await settle({ lastTick: '2025-12-31T00:00:00.000Z' })).toMatchObject({
      first: { requeueAfterMs: 1000 },
    });
  });

  test.each([
    ['it is the run that the schedule notes', { lastRunId: 'ada-1' }, 'uid-schedule', TICK_RUN],
    ['a later tick is noted', { lastTick: '2026-01-01T00:01:00.000Z' }, 'uid-schedule', TICK_RUN],
    ['the schedule is another one by now', {}, 'uid-other', TICK_RUN],
    ['somebody ran the schedule by hand', {}, 'uid-schedule', { ...TICK_RUN, actor: 'bw_abc' }],
    ['it is no run of a schedule', {}, 'uid-schedule', { actor: 'schedule' }],
  ])('goes at once when %s', async (_what, status, uid, spec) =>
    expect(await settle(status as AgentSchedule['status'], uid, spec)).toMatchObject({ first: {}, folded: 1 }),
  );
});
