import { AgentRuns } from '../../../api/v1alpha1/agent-run.js';
import { makeRun, NAMESPACE, type RunParts } from '../../../../test/builders/run-objects.js';
import { RecordingApi } from '../../../../test/builders/recording-api.js';
import { createChildRunController } from './children.js';
import { controllerRunInformer } from '../../../projections/agent-run.js';

const CHILD = `${NAMESPACE}/child`;

function setUp(parent: RunParts | undefined, child: RunParts = {}, waits = true) {
  const api = new RecordingApi();
  const spec = { parent: { name: 'ada-1', uid: 'uid-ada-1', depth: 1, agents: ['ada'], waits }, ...child.spec };
  if (parent !== undefined) api.seed(AgentRuns, makeRun('ada-1', parent));
  api.seed(AgentRuns, makeRun('child', { ...child, spec }));
  const runs = api.informer(controllerRunInformer);
  const controller = createChildRunController({ api, caches: { runs } });
  return { api, runs, controller, reconcile: () => controller.reconcile(CHILD, new AbortController().signal) };
}

const ended = (phase: 'done' | 'error' | 'cancelled') => ({ status: { phase } });

test.each([
  ['works', {}, true, false],
  ['is asked to stop', { spec: { cancelRequested: true } }, false, true],
  ['is being deleted', { metadata: { deletionTimestamp: '2026-01-01T00:00:00Z' } }, false, true],
  ['was cancelled', ended('cancelled'), false, true],
  ['failed while it waited', ended('error'), true, true],
  ['failed and did not wait', ended('error'), false, false],
  ['is done and did not wait', ended('done'), false, false],
  ['is another one of that name', { metadata: { uid: 'uid-later' } }, false, true],
  ['is gone', undefined, false, true],
] as [string, RunParts | undefined, boolean, boolean][])(
  'the child of a run that %s (waits: %#)',
  async (_what, parent, waits, cancelled) => {
    const { api, reconcile } = setUp(parent, {}, waits);
    await reconcile();
    expect(api.peek(AgentRuns, CHILD)?.spec.cancelRequested === true).toBe(cancelled);
    expect(api.writes).toHaveLength(cancelled ? 1 : 0);
  },
);

test.each([
  ['has ended', ended('done')],
  ['is cancelled already', { spec: { cancelRequested: true } }],
])('a child that %s is left alone', async (_what, child) => {
  const { api, reconcile } = setUp(undefined, child);
  await reconcile();
  expect(api.writes).toEqual([]);
});

test('a change of the parent wakes its children, and nobody else', () => {
  const { api, controller } = setUp({});
  api.seed(AgentRuns, makeRun('other'));
  const woken: string[] = [];
  controller.watch((key) => woken.push(key));
  api.seed(AgentRuns, makeRun('ada-1', { spec: { cancelRequested: true } }));
  api.seed(AgentRuns, makeRun('other', ended('done')));
  expect(woken).toEqual([CHILD]);
});
