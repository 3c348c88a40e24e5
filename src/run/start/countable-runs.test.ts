import { API_VERSION } from '../../api/define-resource.js';
import { AgentRuns } from '../../api/v1alpha1/agent-run.js';
import type { AgentRun } from '../../api/v1alpha1/agent-run.js';
import { FakeClock } from '../../../test/builders/fake-clock.js';
import { RecordingApi } from '../../../test/builders/recording-api.js';
import type { Cache, CacheChange } from '../../kube/types.js';
import { countLiveRuns } from './backlog.js';
import { countableRuns } from './countable-runs.js';
import { controllerRunInformer } from '../../projections/agent-run.js';
import type { ControllerRun } from '../../projections/agent-run.js';

function setUp() {
  const api = new RecordingApi({ clock: new FakeClock() });
  const runs = api.informer(controllerRunInformer);
  const listeners: ((change: CacheChange<ControllerRun>) => void)[] = [];
  const source: Pick<Cache<ControllerRun>, 'values' | 'onChange'> = {
    values: () => runs.values(),
    onChange: (listener) => {
      listeners.push(listener);
      return runs.onChange(listener);
    },
  };
  const counts = countLiveRuns(countableRuns(source), 5);
  const replay = () => {
    for (const current of runs.values()) {
      for (const listener of listeners) listener({ key: `bw-lab/${current.metadata.name}`, current });
    }
  };
  const put = (name: string, spec: Partial<AgentRun['spec']>, status: AgentRun['status'] = { phase: 'running' }) =>
    api.seed(AgentRuns, {
      apiVersion: API_VERSION,
      kind: 'AgentRun',
      metadata: { namespace: 'bw-lab', name },
      spec: { agent: 'news', ...spec },
      status,
    });
  return { api, counts, put, replay };
}

test('counts the live runs of the controller’s cache with the bytes of message or input', () => {
  const { api, counts, put } = setUp();
  put('news-1', { message: 'é' });
  put('news-2', { input: { encoding: 'gzip', bytes: 20_000, sha256: 'x', data: 'x'.repeat(500) } });
  put('mail-1', { agent: 'mail', message: 'abc' });
  expect(counts.agent('lab', 'news')).toEqual({ runs: 2, bytes: 502 });
  expect(counts.box('lab')).toEqual({ runs: 3, bytes: 505 });
  put('news-2', { message: 'x' }, { phase: 'done' });
  api.vanish(AgentRuns, 'bw-lab/mail-1');
  expect(counts.installation()).toEqual({ runs: 1, bytes: 2 });
});

test('counts once what a controller that begins to lead hears again', () => {
  const { counts, put, replay } = setUp();
  put('news-1', { message: 'abc' });
  for (let i = 2; i < 7; i++) put(`news-${i}`, { message: 'x' }, { phase: 'done' });
  replay();
  replay();
  expect(counts.installation()).toEqual({ runs: 1, bytes: 3 });
  expect(counts.isFinishedFull('lab')).toBe(false);
  put('news-7', { message: 'x' }, { phase: 'done' });
  expect(counts.isFinishedFull('lab')).toBe(true);
});
