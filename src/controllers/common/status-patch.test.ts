import { Boxes } from '../../api/v1alpha1/box.js';
import type { Box } from '../../api/v1alpha1/box.js';
import { RecordingApi, apiError } from '../../../test/builders/recording-api.js';
import { patchStatus } from './status-patch.js';

describe('patchStatus', () => {
  const signal = new AbortController().signal;
  const box = {
    apiVersion: 'boxwright.dev/v1alpha1',
    kind: 'Box',
    metadata: { name: 'a' },
    spec: { workspace: 'w' },
    status: { agents: 1 },
  } as Box;

  it('names the version that was seen', async () => {
    const api = new RecordingApi();
    const before = api.seed(Boxes, box);
    await patchStatus(api, { type: Boxes, before, draft: { ...before, status: { agents: 2 } } }, signal);
    expect(before.metadata.resourceVersion).toMatch(/^\d+$/);
    expect(api.writes).toEqual([
      {
        verb: 'patch',
        resource: 'boxes/status',
        key: 'a',
        body: { metadata: { resourceVersion: before.metadata.resourceVersion }, status: { agents: 2 } },
      },
    ]);
  });

  it('writes nothing when nothing changed', async () => {
    const api = new RecordingApi();
    const before = api.seed(Boxes, box);
    await patchStatus(api, { type: Boxes, before, draft: structuredClone(before) }, signal);
    expect(api.writes).toEqual([]);
  });

  it('takes an object that is gone as a success, and a conflict as an error', async () => {
    const api = new RecordingApi();
    const before = api.seed(Boxes, box);
    const draft = { ...before, status: { agents: 2 } };
    api.failNext({ verb: 'patch', error: apiError(409, 'Conflict') });
    await expect(patchStatus(api, { type: Boxes, before, draft }, signal)).rejects.toThrow('409');
    api.vanish(Boxes, 'a');
    await expect(patchStatus(api, { type: Boxes, before, draft }, signal)).resolves.toBe(draft.metadata);
  });
});
