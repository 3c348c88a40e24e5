import { Boxes } from '../../api/v1alpha1/box.js';
import type { Box } from '../../api/v1alpha1/box.js';
import { RecordingApi, apiError } from '../../../test/builders/recording-api.js';
import { patchStatus, statusDiff } from './status-patch.js';

describe('the difference of two statuses', () => {
  test.each([
    ['nothing when they are equal', { a: { b: [1] } }, { a: { b: [1] } }, {}],
    ['everything when there was none', undefined, { a: 1 }, { a: 1 }],
    ['only what changed', { a: 1, b: 2, folded: { runs: 5 } }, { a: 1, b: 3, folded: { runs: 5 } }, { b: 3 }],
    ['null for what is gone', { a: 1, handle: 'x' }, { a: 1 }, { handle: null }],
    ['a whole list', { conditions: [1, 2] }, { conditions: [2] }, { conditions: [2] }],
  ])('is %s', (_name, before, after, patch) => {
    expect(statusDiff(before, after)).toEqual(patch);
  });
});

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
