import { Jobs } from '../../kube/core-types.js';
import { FakeClock } from '../../../test/builders/fake-clock.js';
import { RecordingApi } from '../../../test/builders/recording-api.js';
import { NAMESPACE, makeBox, makeRun } from '../../../test/builders/run-objects.js';
import type { RunState } from './run-state.js';
import { RunWriter } from './run-writer.js';
import { Settler } from './settle.js';
import { projectJob } from './views.js';

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
  const state = { run, job: projectJob(job), box: makeBox(), uid: run.metadata.uid ?? '' } as RunState;
  const settler = new Settler({ clock, fold: () => Promise.resolve() }, new RunWriter(api, clock));
  return { api, state, settler };
}

test('the TTL of a Job is written once, however often the run is looked at before the cache shows it', async () => {
  const { api, state, settler } = setUp();
  for (let look = 0; look < 3; look++) await settler.settle(state, SIGNAL);
  expect(api.writes.map(({ verb, resource }) => `${verb} ${resource}`)).toEqual(['patch jobs']);
});

test('a TTL that could not be written is written at the next look', async () => {
  const { api, state, settler } = setUp();
  const { patch } = api;
  api.patch = () => Promise.reject(new Error('no answer'));
  await expect(settler.settle(state, SIGNAL)).rejects.toThrow('no answer');
  api.patch = patch;
  await settler.settle(state, SIGNAL);
  expect(api.writes.map(({ verb, resource }) => `${verb} ${resource}`)).toEqual(['patch jobs']);
});
