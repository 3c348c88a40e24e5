/** The API server in memory says what the real one says: each scenario runs on both and must end the same. */
import { ResourceQuotas, Jobs, Secrets } from '../../src/kube/core-types.js';
import type { Job, Secret } from '../../src/kube/core-types.js';
import { KubeApiError } from '../../src/kube/errors.js';
import type { KubeApi } from '../../src/kube/types.js';
import { startApiServer } from '../builders/api-server.js';
import type { TestApiServer } from '../builders/api-server.js';
import { apiError, RecordingApi } from '../builders/recording-api.js';
import { writeStatus } from '../builders/write-status.js';

let server: TestApiServer;
beforeAll(async () => {
  server = await startApiServer();
});
afterAll(() => server.stop());

type Scenario = (api: KubeApi, namespace: string) => Promise<unknown>;

function secret(namespace: string, parts: Partial<Secret['metadata']> = {}, data = {}): Secret {
  return { apiVersion: 'v1', kind: 'Secret', metadata: { name: 's', namespace, ...parts }, type: 'Opaque', data };
}

function job(namespace: string): Job {
  const template = { spec: { restartPolicy: 'Never', containers: [{ name: 'c', image: 'none' }] } };
  return { apiVersion: 'batch/v1', kind: 'Job', metadata: { name: 'j', namespace }, spec: { template, suspend: true } };
}

/** What a caller can tell: the error's class, or `ok`. */
async function outcome(promise: Promise<unknown>): Promise<string> {
  return promise.then(
    () => 'ok',
    (error: unknown) => (error instanceof KubeApiError ? `${error.status} ${error.reason}` : String(error)),
  );
}

const scenarios: [string, Scenario, unknown][] = [
  [
    'create twice',
    async (api, namespace) => {
      await api.create(Secrets, secret(namespace));
      return outcome(api.create(Secrets, secret(namespace)));
    },
    '409 AlreadyExists',
  ],
  [
    'replace with an old version, then with the new one, then without one',
    async (api, namespace) => {
      const first = await api.create(Secrets, secret(namespace));
      const second = await api.replace(Secrets, { ...first, data: { a: 'MQ==' } });
      return [
        await outcome(api.replace(Secrets, { ...first, data: { a: 'Mg==' } })),
        await outcome(api.replace(Secrets, { ...second, data: { a: 'Mw==' } })),
        (await api.get(Secrets, { namespace, name: 's' })).data,
      ];
    },
    ['409 Conflict', 'ok', { a: 'Mw==' }],
  ],
  [
    'a write that changes nothing keeps the version',
    async (api, namespace) => {
      const first = await api.create(Secrets, secret(namespace, {}, { a: 'MQ==' }));
      const second = await api.replace(Secrets, first);
      return second.metadata.resourceVersion === first.metadata.resourceVersion;
    },
    true,
  ],
  [
    'the status of a new object is dropped; its subresource writes it and nothing else; the generation counts spec changes',
    async (api, namespace) => {
      const created = await api.create(Jobs, { ...job(namespace), status: { active: 7 } });
      const counted = await writeStatus(api, Jobs, {
        ...created,
        spec: { ...created.spec, suspend: false },
        status: { active: 2 },
      });
      const resumed = await api.replace(Jobs, { ...counted, spec: { ...counted.spec, suspend: false }, status: {} });
      return [created, counted, resumed].map((one) => [one.status?.active, one.spec.suspend, one.metadata.generation]);
    },
    [
      [undefined, true, 1],
      [2, true, 1],
      [2, false, 2],
    ],
  ],
  [
    'delete with the preconditions of another object, then with the right ones, then again',
    async (api, namespace) => {
      const { metadata } = await api.create(Secrets, secret(namespace));
      const ref = { namespace, name: 's' };
      return [
        await outcome(api.delete(Secrets, ref, { uid: 'another' })),
        await outcome(api.delete(Secrets, ref, { resourceVersion: '1' })),
        await outcome(api.delete(Secrets, ref, { uid: metadata.uid as string })),
        await outcome(api.delete(Secrets, ref)),
      ];
    },
    ['409 Conflict', '409 Conflict', 'ok', '404 NotFound'],
  ],
  [
    'an object with a finalizer stays until the finalizer is removed',
    async (api, namespace) => {
      const ref = { namespace, name: 's' };
      await api.create(Secrets, secret(namespace, { finalizers: ['boxwright.dev/test'] }));
      await api.delete(Secrets, ref);
      const deleting = await api.get(Secrets, ref);
      const again = await outcome(api.delete(Secrets, ref));
      await api.replace(Secrets, { ...deleting, metadata: { ...deleting.metadata, finalizers: [] } });
      return [deleting.metadata.deletionTimestamp !== undefined, again, await outcome(api.get(Secrets, ref))];
    },
    [true, 'ok', '404 NotFound'],
  ],
  [
    'patches: merge removes with null, json adds, a version in a merge patch is a precondition',
    async (api, namespace) => {
      const ref = { namespace, name: 's' };
      await api.create(Secrets, secret(namespace, { labels: { x: '1' } }, { a: 'MQ==', b: 'Mg==' }));
      await api.patch(Secrets, ref, { data: { a: null } }, { type: 'merge' });
      const patched = await api.patch(
        Secrets,
        ref,
        [{ op: 'add', path: '/metadata/labels/boxwright.dev~1y', value: '2' }],
        { type: 'json' },
      );
      const stale = { metadata: { resourceVersion: '1', labels: { x: '9' } } };
      return [patched.data, patched.metadata.labels, await outcome(api.patch(Secrets, ref, stale, { type: 'merge' }))];
    },
    [{ b: 'Mg==' }, { x: '1', 'boxwright.dev/y': '2' }, '409 Conflict'],
  ],
  [
    'apply creates, and applied again changes its fields',
    async (api, namespace) => {
      const quota = (pods: string) => ({
        apiVersion: 'v1',
        kind: 'ResourceQuota',
        metadata: { name: 'q', namespace },
        spec: { hard: { pods } },
      });
      const options = { type: 'apply', fieldManager: 'boxwright-test' } as const;
      const first = await api.patch(ResourceQuotas, { namespace, name: 'q' }, quota('1'), options);
      const second = await api.patch(ResourceQuotas, { namespace, name: 'q' }, quota('2'), options);
      return [first.spec.hard, second.spec.hard, first.metadata.uid === second.metadata.uid];
    },
    [{ pods: '1' }, { pods: '2' }, true],
  ],
  [
    'lists are selected by namespace, labels and fields',
    async (api, namespace) => {
      for (const [name, app] of Object.entries({ a: 'x', b: 'y', c: 'x' })) {
        await api.create(Secrets, secret(namespace, { name, labels: { app } }));
      }
      const names = async (selector: object) =>
        (await api.list(Secrets, { namespace, ...selector })).items.map((item) => item.metadata.name).sort();
      return [
        await names({ labelSelector: 'app=x' }),
        await names({ labelSelector: 'app!=x' }),
        await names({ labelSelector: 'app,!missing' }),
        await names({ fieldSelector: 'metadata.name=b' }),
        await names({ labelSelector: 'app=z' }),
      ];
    },
    [['a', 'c'], ['b'], ['a', 'b', 'c'], ['b'], []],
  ],
];

describe.each([
  ['the API server in memory', (): KubeApi => new RecordingApi()],
  ['a real API server', (): KubeApi => server.api],
])('%s', (_name, apiOf) => {
  test.each(scenarios)('%s', async (_scenario, run, expected) => {
    const namespace = await server.createNamespace('recording');

    expect(await run(apiOf(), namespace)).toEqual(expected);
  });
});

describe('what a test asks of the API server in memory', () => {
  test('writes and reads are recorded; seeds and peeks are not', async () => {
    const api = new RecordingApi();
    api.seed(Secrets, secret('ns'));
    const seeded = api.peek(Secrets, 'ns/s');

    await api.get(Secrets, { namespace: 'ns', name: 's' });
    await api.delete(Secrets, { namespace: 'ns', name: 's' }, { uid: 'another' }).catch(() => undefined);

    expect(seeded?.metadata).toMatchObject({ uid: 'uid-secrets-1', generation: 1, resourceVersion: '1001' });
    expect(api.reads).toEqual([{ verb: 'get', resource: 'secrets', key: 'ns/s' }]);
    expect(api.writes).toEqual([{ verb: 'delete', resource: 'secrets', key: 'ns/s', body: { uid: 'another' } }]);
    expect(api.all(Secrets)).toHaveLength(1);
  });

  test('an informer follows at once, by its selector, with objects that cannot be changed', async () => {
    const api = new RecordingApi();
    const informer = api.informer({
      type: Secrets,
      labelSelector: 'app=x',
      project: (object) => ({ name: object.metadata.name, labels: object.metadata.labels }),
      indexes: { byName: (object) => [object.name] },
    });
    const keys: string[] = [];
    informer.onChange((change) => keys.push(change.key));

    const created = await api.create(Secrets, secret('ns', { labels: { app: 'x' } }));
    await api.create(Secrets, secret('ns', { name: 'other' }));
    const found = informer.byIndex('byName', 's')[0];
    await api.replace(Secrets, { ...created, metadata: { ...created.metadata, labels: {} } });

    expect(found).toEqual({ name: 's', labels: { app: 'x' } });
    expect(Object.isFrozen(found?.labels)).toBe(true);
    expect(informer.size).toBe(0);
    expect(keys).toEqual(['ns/s', 'ns/s']);
  });

  test('failures are injected before the write or after it, as often as asked', async () => {
    const api = new RecordingApi();
    const create = (name: string) => outcome(api.create(Secrets, secret('ns', { name })));
    api.failNext({ verb: 'create', resource: 'secrets', error: apiError(500, 'InternalError'), times: 2 });
    api.failNext({ verb: 'create', key: 'ns/c', error: apiError(504, 'Timeout'), afterWrite: true });

    const outcomes = [await create('a'), await create('a'), await create('a'), await create('c'), await create('c')];

    expect(outcomes).toEqual(['500 InternalError', '500 InternalError', 'ok', '504 Timeout', '409 AlreadyExists']);
    expect(api.writes).toHaveLength(5);
  });
});
