import { FINALIZER_CLEANUP, FINALIZER_ROLL_UP } from '../api/labels.js';
import { AgentRuns } from '../api/v1alpha1/agent-run.js';
import { Agents, type Agent } from '../api/v1alpha1/agent.js';
import { ALL_KINDS } from '../api/v1alpha1/index.js';
import type { KubeApi, ListOptions } from '../kube/types.js';
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
    await api.create(AgentRuns, run('one', [FINALIZER_ROLL_UP, 'example.com/other']));
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
    await api.create(AgentRuns, run('one', [FINALIZER_ROLL_UP]));
    api.failNext({ verb: 'list', resource: Agents.plural, error: apiError(404, 'NotFound') });

    await expect(releaseFinalizers(api, ALL_KINDS)).resolves.toBe(1);
  });

  test('fails loudly on a conflict, so that the Job is retried', async () => {
    const api = new RecordingApi();
    await api.create(AgentRuns, run('one', [FINALIZER_ROLL_UP]));
    api.failNext({ verb: 'patch', error: apiError(409, 'Conflict') });

    await expect(releaseFinalizers(api, ALL_KINDS)).rejects.toThrow(
      'AgentRun one changed meanwhile; run the hook again',
    );
  });

  test('releases all others when objects cannot be written, of every kind', async () => {
    const api = new RecordingApi();
    for (let i = 0; i < 40; i++) await api.create(AgentRuns, run(`broken-${i}`, [FINALIZER_ROLL_UP]));
    await api.create(AgentRuns, run('one', [FINALIZER_ROLL_UP]));
    const agent = {
      apiVersion: 'boxwright.dev/v1alpha1',
      kind: 'Agent',
      metadata: { ...run('ada', [FINALIZER_CLEANUP]).metadata },
    };
    await api.create(Agents, { ...agent, spec: { name: 'ada' } } as unknown as Agent);
    for (let i = 0; i < 40; i++) {
      api.failNext({ verb: 'patch', key: `bw-a/broken-${i}`, error: apiError(422, 'Invalid', 'no longer valid') });
    }
    await expect(releaseFinalizers(api, [AgentRuns, Agents])).rejects.toThrow('no longer valid');
    expect(api.peek(AgentRuns, 'bw-a/one')?.metadata.finalizers).toEqual([]);
    expect(api.peek(Agents, 'bw-a/ada')?.metadata.finalizers).toEqual([]);
  });

  test('writes many objects at once, and reads nothing of what they hold', async () => {
    const items = Array.from({ length: 100 }, (_, index) => run(`run-${index}`, [FINALIZER_ROLL_UP]));
    const written = new Set<string>();
    let asked: ListOptions | undefined;
    let underWay = 0;
    let mostUnderWay = 0;
    const api = {
      list: (_type: unknown, options?: ListOptions) => {
        asked = options;
        return Promise.resolve({ items, resourceVersion: '1' });
      },
      patch: async (_type: unknown, { name }: { name: string }) => {
        underWay += 1;
        mostUnderWay = Math.max(mostUnderWay, underWay);
        await new Promise((resolve) => setImmediate(resolve));
        underWay -= 1;
        written.add(name);
      },
    } as unknown as Pick<KubeApi, 'list' | 'patch'>;

    expect(await releaseFinalizers(api, [AgentRuns])).toBe(100);
    expect(written.size).toBe(100);
    expect(asked).toMatchObject({ metadataOnly: true });
    expect(mostUnderWay).toBeGreaterThan(8);
  });
});
