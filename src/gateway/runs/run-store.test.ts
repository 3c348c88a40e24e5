import { recordingLog } from '../../../test/builders/log.js';
import type { AgentRun } from '../../api/v1alpha1/agent-run.js';
import { AgentRuns } from '../../api/v1alpha1/agent-run.js';
import { RecordingApi } from '../../../test/builders/recording-api.js';
import { BY_SESSION, projectGatewayRun } from '../../projections/agent-run.js';
import { sessionKeyOf } from '../../run/session/key.js';
import { RunStore } from './run-store.js';

const { log } = recordingLog();

const REF = { namespace: 'bw-lab', name: 'ada-1' };
const RUN: AgentRun = {
  apiVersion: 'boxwright.dev/v1alpha1',
  kind: 'AgentRun',
  metadata: { ...REF },
  spec: { agent: 'ada', message: 'go' },
  status: { phase: 'running' },
};
const DONE = { type: 'finished', by: 'gateway', outcome: { reason: 'Completed', message: '' } } as const;

function setUp() {
  const api = new RecordingApi();
  const indexes = { [BY_SESSION]: (run: AgentRun) => [sessionKeyOf(run)] };
  const cache = api.informer({ type: AgentRuns, project: projectGatewayRun, indexes });
  return { api, cache, run: api.seed(AgentRuns, RUN) };
}

/** Lets the answer of a call wait until the test releases it. */
function held<A extends unknown[], R>(call: (...args: A) => Promise<R>) {
  let release: () => void = () => undefined;
  const gate = new Promise<void>((resolve) => (release = resolve));
  const later = async (...args: A): Promise<R> => {
    const answer = await call(...args);
    await gate;
    return answer;
  };
  return { later, release };
}

describe('a run that is deleted before an answer about it arrives is not remembered', () => {
  test('the answer to a read', async () => {
    const { api, cache } = setUp();
    const { later, release } = held(() => api.get(AgentRuns, REF));
    const get = later as unknown as typeof api.get;
    const store = new RunStore({ api: { get, patch: api.patch.bind(api) }, cache, log });
    const answered = store.fetch(REF);
    await api.delete(AgentRuns, REF);
    release();

    expect(await answered).toMatchObject({ metadata: REF });
    await Promise.resolve();
    expect(store.get(REF)).toBeUndefined();
    await expect(store.find(REF)).rejects.toMatchObject({ status: 404 });
  });

  test('the answer to a write', async () => {
    const { api, cache } = setUp();
    const { later, release } = held(api.patch.bind(api) as (...args: unknown[]) => Promise<unknown>);
    const store = new RunStore({
      api: { get: api.get.bind(api), patch: later as unknown as typeof api.patch },
      cache,
      log,
    });
    const written = store.update(REF, () => ({ ...DONE, now: '2026-01-01T00:00:00.000Z' }));
    while (api.writes.length === 0) await Promise.resolve();
    await api.delete(AgentRuns, REF);
    release();

    expect(await written).toMatchObject({ isWritten: true });
    await Promise.resolve();
    expect(store.get(REF)).toBeUndefined();
  });
});

test('an answer of which the watch is behind is remembered until the watch brings the run', async () => {
  const { api, cache, run } = setUp();
  let reach: (reached: boolean) => void = () => undefined;
  const listeners: Parameters<typeof cache.onChange>[0][] = [];
  let shown: AgentRun | undefined;
  const behind = {
    get: () => shown,
    byIndex: () => [],
    onChange: (listener: (typeof listeners)[number]) => {
      listeners.push(listener);
      return () => undefined;
    },
    waitForResourceVersion: () => new Promise<boolean>((resolve) => (reach = resolve)),
  };
  const store = new RunStore({ api, cache: behind, log });
  await store.fetch(REF);
  expect(store.get(REF)).toMatchObject({ metadata: REF });

  shown = { ...run, status: { phase: 'running', agentUid: 'of the watch' } };
  for (const listener of listeners) listener({ key: 'bw-lab/ada-1', current: shown });
  reach(true);
  await Promise.resolve();
  expect(store.get(REF)?.status?.agentUid).toBe('of the watch');
});
