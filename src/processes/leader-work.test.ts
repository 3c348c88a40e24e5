import { FakeClock } from '../../test/builders/fake-clock.js';
import { recordingLog } from '../../test/builders/log.js';
import { RecordingApi } from '../../test/builders/recording-api.js';
import { makeBox } from '../../test/builders/run-objects.js';
import { Boxes } from '../api/v1alpha1/box.js';
import { LeaderWork, replayable } from './leader-work.js';
import { controllerBoxInformer } from '../projections/box.js';

const METRICS = { reconciled: () => undefined, queueDepth: () => undefined, activeWorkers: () => undefined };

function setUp() {
  const api = new RecordingApi();
  const clock = new FakeClock();
  const { informer, replay } = replayable(api.informer(controllerBoxInformer));
  const worked: string[] = [];
  const work = new LeaderWork({
    parts: [
      {
        name: 'box',
        workers: 1,
        watch: (enqueue) => informer.onChange(({ key }) => enqueue(key)),
        reconcile: (key) => {
          worked.push(key);
          return Promise.resolve();
        },
      },
    ],
    replays: [replay],
    clock,
    log: recordingLog().log,
    metrics: METRICS,
  });
  return { api, clock, work, worked };
}

test('the leader looks at everything that was there before it led, and at nothing that is gone', async () => {
  const { api, clock, work, worked } = setUp();
  for (const name of ['a', 'b', 'c']) api.seed(Boxes, makeBox({}, name));
  api.vanish(Boxes, 'b');
  await clock.advance(0);
  expect(worked).toEqual([]);
  work.start();
  await clock.advance(0);
  expect(worked).toEqual(['a', 'c']);
  api.seed(Boxes, makeBox({}, 'd'));
  await clock.advance(0);
  expect(worked).toEqual(['a', 'c', 'd']);
  await work.stop();
});

test('after the stop nothing is worked on any more', async () => {
  const { api, clock, work, worked } = setUp();
  work.start();
  await work.stop();
  api.seed(Boxes, makeBox({}, 'a'));
  await clock.advance(0);
  expect(worked).toEqual([]);
});
