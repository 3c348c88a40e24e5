import { Namespaces, Pods } from '../../kube/core-types.js';
import type { Namespace } from '../../kube/core-types.js';
import { RecordingApi, apiError } from '../../../test/builders/recording-api.js';
import { ensureNamespace, namespaceClaim, removeNamespace } from './namespace.js';
import { namespaceInformer } from '../../projections/managed-objects.js';

const owner = { name: 'dev', uid: 'uid-1', label: 'boxwright.dev/box' };
const ours = { 'app.kubernetes.io/managed-by': 'boxwright', 'boxwright.dev/box': 'dev' };
const signal = new AbortController().signal;
const ownerReferences = [
  { apiVersion: 'boxwright.dev/v1alpha1', kind: 'Box', name: 'dev', uid: 'uid-1', controller: true },
];
const labels = { 'app.kubernetes.io/managed-by': 'boxwright', level: 'restricted' };
const wanted: Namespace = {
  apiVersion: 'v1',
  kind: 'Namespace',
  metadata: { name: 'bw-dev', labels, ownerReferences },
};

function makeNamespace(metadata: Partial<Namespace['metadata']>): Namespace {
  return { apiVersion: 'v1', kind: 'Namespace', metadata: { name: 'bw-dev', ...metadata } };
}

const adopt = { 'boxwright.dev/adopt': 'dev' };
const adopted0 = { ...adopt, 'boxwright.dev/adopted-by-uid': 'uid-0' };
const adopted = { ...adopt, 'boxwright.dev/adopted-by-uid': 'uid-1' };

test.each([
  ['owned', 'made by us', { ownerReferences }],
  ['foreign', 'of a former Box of this name', { ownerReferences: [{ ...ownerReferences[0]!, uid: 'uid-0' }] }],
  ['foreign', 'of somebody else', {}],
  ['restored', 'of a backup, without its owner', { labels: ours }],
  ['foreign', 'of the backup of another Box', { labels: { ...ours, 'boxwright.dev/box': 'prod' } }],
  ['foreign', 'that only bears the name of a Box', { labels: { 'boxwright.dev/box': 'dev' } }],
  [
    'foreign',
    'with our labels and the owner of before',
    { labels: ours, ownerReferences: [{ ...ownerReferences[0]!, uid: 'uid-0' }] },
  ],
  ['adoptable', 'of a backup, adopted there', { labels: ours, annotations: adopted0 }],
  ['foreign', 'to be adopted by another Box', { annotations: { 'boxwright.dev/adopt': 'prod' } }],
  ['adoptable', 'to be adopted by this Box', { annotations: adopt }],
  [
    'adoptable',
    'adopted by a former Box of this name',
    { annotations: { ...adopted, 'boxwright.dev/adopted-by-uid': 'x' } },
  ],
  ['adopted', 'adopted by this Box', { annotations: adopted }],
])('%s is a namespace %s', (claim, _name, metadata) => {
  expect(namespaceClaim(makeNamespace(metadata), owner)).toBe(claim);
});

describe('ensureNamespace', () => {
  function setup(existing?: Partial<Namespace['metadata']>) {
    const api = new RecordingApi();
    if (existing !== undefined) api.seed(Namespaces, makeNamespace(existing));
    const deps = { api, cache: api.informer(namespaceInformer) };
    const ensure = () => ensureNamespace(deps, { owner, namespace: wanted }, signal);
    const writes = () => api.writes.map(({ verb, key, body }) => ({ verb, key, body }));
    return { api, ensure, writes, metadata: () => api.peek(Namespaces, 'bw-dev')?.metadata };
  }

  it('is the owner of one from a backup again', async () => {
    const { ensure, metadata, api } = setup({ labels: ours });
    expect(await ensure()).toBeUndefined();
    expect(metadata()).toMatchObject({ ownerReferences, labels: { level: 'restricted' } });
    api.clearRecords();
    expect(await ensure()).toBeUndefined();
    expect(api.writes).toEqual([]);
  });

  it('creates it, and leaves it alone after that', async () => {
    const { api, ensure, writes } = setup();
    expect(await ensure()).toBeUndefined();
    expect(writes()).toEqual([{ verb: 'create', key: 'bw-dev', body: wanted }]);
    api.clearRecords();
    expect(await ensure()).toBeUndefined();
    expect(api.writes).toEqual([]);
    expect(api.reads).toEqual([]);
  });

  it('takes what another writer created at the same moment', async () => {
    const { api, ensure, metadata } = setup();
    const lost = { verb: 'create', error: apiError(409, 'AlreadyExists'), afterWrite: true } as const;
    api.failNext(lost);
    expect(await ensure()).toBeUndefined();
    expect(metadata()?.ownerReferences).toEqual(ownerReferences);
  });

  it('puts labels back under the version that it saw', async () => {
    const { ensure, writes, metadata } = setup({
      ownerReferences,
      labels: { ...labels, level: 'privileged', theirs: 'x' },
    });
    const { resourceVersion } = metadata() ?? {};
    expect(await ensure()).toBeUndefined();
    expect(writes()).toEqual([
      { verb: 'patch', key: 'bw-dev', body: { metadata: { resourceVersion, labels: { level: 'restricted' } } } },
    ]);
    expect(metadata()?.labels).toEqual({ ...labels, theirs: 'x' });
  });

  it('refuses a foreign one without a write', async () => {
    const { api, ensure } = setup({});
    expect((await ensure())?.reason).toBe('NamespaceExists');
    expect(api.writes).toEqual([]);
  });

  it('waits for one that is being deleted', async () => {
    const { api, ensure } = setup({ ownerReferences, labels, deletionTimestamp: '2026-01-01T00:00:00Z' });
    expect((await ensure())?.reason).toBe('NamespaceTerminating');
    expect(api.writes).toEqual([]);
  });

  it('adopts an annotated one without becoming its owner, and looks for workloads only once', async () => {
    const { api, ensure, metadata } = setup({ annotations: adopt });
    expect(await ensure()).toBeUndefined();
    expect(metadata()).toMatchObject({ labels, annotations: adopted });
    expect(metadata()?.ownerReferences).toBeUndefined();
    api.clearRecords();
    expect(await ensure()).toBeUndefined();
    expect([...api.writes, ...api.reads]).toEqual([]);
  });

  it('does not adopt one with a pod in it', async () => {
    const { api, ensure } = setup({ annotations: adopt });
    api.seed(Pods, { apiVersion: 'v1', kind: 'Pod', metadata: { name: 'web', namespace: 'bw-dev' }, spec: {} });
    expect(await ensure()).toEqual({
      reason: 'NamespaceExists',
      message: 'namespace bw-dev cannot be adopted because it holds Pod web; remove its workloads',
    });
    expect(api.writes).toEqual([]);
  });
});

describe('removeNamespace', () => {
  test.each([
    ['is done when there is none', undefined, true, []],
    ['leaves a foreign one', {}, true, []],
    ['leaves an adopted one', { annotations: adopted }, true, []],
    ['deletes our own and waits', { ownerReferences, finalizers: ['kubernetes'] }, false, ['delete bw-dev']],
    ['waits for one that is on its way', { ownerReferences, deletionTimestamp: '2026-01-01T00:00:00Z' }, false, []],
  ])('%s', async (_name, metadata, done, writes) => {
    const api = new RecordingApi();
    if (metadata !== undefined) api.seed(Namespaces, makeNamespace(metadata));
    expect(await removeNamespace(api, 'bw-dev', owner, signal)).toBe(done);
    expect(api.writes.map(({ verb, key }) => `${verb} ${key}`)).toEqual(writes);
  });
});
