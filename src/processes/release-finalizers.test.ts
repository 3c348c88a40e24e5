import { FINALIZER_CLEANUP, FINALIZER_FOLD } from '../api/labels.js';
import { AgentRuns } from '../api/v1alpha1/agent-run.js';
import { Agents } from '../api/v1alpha1/agent.js';
import { ALL_KINDS } from '../api/v1alpha1/index.js';
import { RecordingApi, apiError } from '../../test/builders/recording-api.js';
import { releaseFinalizers } from './release-finalizers.js';

const run = (name: string, finalizers: string[]) => ({
  apiVersion: 'boxwright.dev/v1alpha1',
  kind: 'AgentRun',
  metadata: { name, namespace: 'bw-a', finalizers },
  spec: { agent: 'a', message: 'hello' },
});

describe('the uninstall hook', () => {
  test('removes our finalizers from every object and leaves those of others', async () => {
    const api = new RecordingApi();
    await api.create(AgentRuns, run('one', [FINALIZER_FOLD, 'example.com/other']));
    await api.create(AgentRuns, run('two', ['example.com/other']));
    await api.create(AgentRuns, run('three', [FINALIZER_CLEANUP]));

    const released = await releaseFinalizers(api, ALL_KINDS);

    expect(released).toBe(2);
    expect((await api.get(AgentRuns, { namespace: 'bw-a', name: 'one' })).metadata.finalizers).toEqual([
      'example.com/other',
    ]);
    expect((await api.get(AgentRuns, { namespace: 'bw-a', name: 'two' })).metadata.finalizers).toEqual([
      'example.com/other',
    ]);
    expect((await api.get(AgentRuns, { namespace: 'bw-a', name: 'three' })).metadata.finalizers ?? []).toEqual([]);
  });

  test('goes on when a CRD is missing', async () => {
    const api = new RecordingApi();
    await api.create(AgentRuns, run('one', [FINALIZER_FOLD]));
    api.failNext({ verb: 'list', resource: Agents.plural, error: apiError(404, 'NotFound') });

    await expect(releaseFinalizers(api, ALL_KINDS)).resolves.toBe(1);
  });

  test('fails loudly on a conflict, so that the Job is retried', async () => {
    const api = new RecordingApi();
    await api.create(AgentRuns, run('one', [FINALIZER_FOLD]));
    api.failNext({ verb: 'patch', error: apiError(409, 'Conflict') });

    await expect(releaseFinalizers(api, ALL_KINDS)).rejects.toThrow(
      'AgentRun one changed meanwhile; run the hook again',
    );
  });
});
