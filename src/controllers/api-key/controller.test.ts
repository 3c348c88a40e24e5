import { findCondition, isTrue } from '../../api/conditions.js';
import { hashOfApiKey } from '../../api/api-key-validity.js';
import { APIKeys } from '../../api/v1alpha1/api-key.js';
import type { APIKey } from '../../api/v1alpha1/api-key.js';
import { Workspaces } from '../../api/v1alpha1/workspace.js';
import { Secrets } from '../../kube/core-types.js';
import { createLogger } from '../../observability/logger.js';
import { FakeClock } from '../../../test/builders/fake-clock.js';
import { RecordingApi, apiError } from '../../../test/builders/recording-api.js';
import { createAPIKeyController } from './controller.js';
import { controllerApiKeyInformer } from '../../projections/api-key.js';
import { controllerWorkspaceInformer } from '../../projections/workspace.js';

const KEY = 'bw-ws-acme/ci';
const apiVersion = 'boxwright.dev/v1alpha1';
const signal = new AbortController().signal;

function setup(overrides: { spec?: Partial<APIKey['spec']>; status?: APIKey['status'] } = {}) {
  const clock = new FakeClock(Date.parse('2026-01-01T00:00:00Z'));
  const api = new RecordingApi({ clock });
  api.seed(Workspaces, {
    apiVersion,
    kind: 'Workspace',
    metadata: { name: 'acme' },
    spec: { slots: 1, expertSandbox: false },
    status: { namespace: 'bw-ws-acme' },
  });
  api.seed(APIKeys, {
    apiVersion,
    kind: 'APIKey',
    metadata: { name: 'ci', namespace: 'bw-ws-acme' },
    spec: { revoked: false, readOnly: false, ...overrides.spec },
    ...(overrides.status === undefined ? {} : { status: overrides.status }),
  });
  const lines: string[] = [];
  const log = createLogger('test', 'debug', { write: (line) => lines.push(line) });
  const caches = {
    apiKeys: api.informer(controllerApiKeyInformer),
    workspaces: api.informer(controllerWorkspaceInformer),
  };
  let draws = 0;
  const random = (size: number) => Buffer.alloc(size, ++draws);
  const controller = createAPIKeyController({ api, clock, log, caches, random });
  const apiKey = () => api.peek(APIKeys, KEY);
  const keyInSecret = () => Buffer.from(api.peek(Secrets, KEY)?.data?.['key'] ?? '', 'base64').toString();
  return { api, clock, lines, controller, apiKey, keyInSecret, reconcile: () => controller.reconcile(KEY, signal) };
}

const summary = (api: RecordingApi) => api.writes.map(({ verb, resource }) => `${verb} ${resource}`);

describe('an API key', () => {
  it('is made once: one Secret, one status write, and then nothing', async () => {
    const { api, lines, apiKey, keyInSecret, reconcile } = setup();
    await reconcile();
    expect(summary(api)).toEqual(['create secrets', 'patch apikeys/status']);
    const key = keyInSecret();
    expect(key).toBe(`bw_${Buffer.alloc(32, 1).toString('base64url')}`);
    expect(apiKey()?.status).toMatchObject({ hash: hashOfApiKey(key), prefix: key.slice(0, 11), secretName: 'ci' });
    expect(isTrue(apiKey()?.status?.conditions, 'Ready')).toBe(true);
    expect(api.peek(Secrets, KEY)?.metadata.ownerReferences).toMatchObject([
      { kind: 'APIKey', name: 'ci', uid: apiKey()?.metadata.uid, controller: true },
    ]);
    expect(JSON.stringify(apiKey()) + lines.join('')).not.toContain(key);
    api.clearRecords();
    await reconcile();
    expect(api.writes).toEqual([]);
    expect(api.reads).toEqual([]);
  });

  it('is the one in the Secret when the controller died before it wrote the hash', async () => {
    const { api, apiKey, keyInSecret, reconcile } = setup();
    api.failNext({ verb: 'patch', resource: 'apikeys/status', error: apiError(500, 'InternalError') });
    await expect(reconcile()).rejects.toThrow('500');
    const key = keyInSecret();
    api.clearRecords();
    await reconcile();
    expect(summary(api)).toEqual(['patch apikeys/status']);
    expect(keyInSecret()).toBe(key);
    expect(apiKey()?.status?.hash).toBe(hashOfApiKey(key));
  });

  it('is not made again when the answer to the status write was lost', async () => {
    const { api, apiKey, keyInSecret, reconcile } = setup();
    const lost = {
      verb: 'patch',
      resource: 'apikeys/status',
      error: apiError(504, 'Timeout'),
      afterWrite: true,
    } as const;
    api.failNext(lost);
    await expect(reconcile()).rejects.toThrow('504');
    await reconcile();
    expect(summary(api)).toEqual(['create secrets', 'patch apikeys/status']);
    expect(apiKey()?.status?.hash).toBe(hashOfApiKey(keyInSecret()));
  });

  it('is another one when somebody removes the hash', async () => {
    const { api, apiKey, keyInSecret, reconcile } = setup();
    await reconcile();
    const first = keyInSecret();
    const body = { status: { hash: null } };
    await api.patch(APIKeys, { namespace: 'bw-ws-acme', name: 'ci' }, body, { type: 'merge', subresource: 'status' });
    api.clearRecords();
    await reconcile();
    expect(summary(api)).toEqual(['replace secrets', 'patch apikeys/status']);
    expect(keyInSecret()).not.toBe(first);
    expect(apiKey()?.status?.hash).toBe(hashOfApiKey(keyInSecret()));
  });

  it('is the one in a Secret of a backup, which is ours again; without our label it is refused', async () => {
    const metadata = { name: 'ci', namespace: 'bw-ws-acme' };
    const labels = { 'app.kubernetes.io/managed-by': 'boxwright' };
    const data = { key: Buffer.from(`bw_${'k'.repeat(43)}`).toString('base64') };
    for (const [made, isTaken] of [
      [{ ...metadata, labels }, true],
      [metadata, false],
    ] as const) {
      const { api, apiKey, keyInSecret, reconcile } = setup();
      api.seed(Secrets, { apiVersion: 'v1', kind: 'Secret', metadata: made, data });
      await reconcile();
      expect(apiKey()?.status?.hash !== undefined).toBe(isTaken);
      expect(keyInSecret()).toBe(`bw_${'k'.repeat(43)}`);
      if (!isTaken) continue;
      expect(apiKey()?.status?.hash).toBe(hashOfApiKey(keyInSecret()));
      expect(api.peek(Secrets, KEY)?.metadata.ownerReferences).toMatchObject([{ uid: apiKey()?.metadata.uid }]);
    }
  });

  it('does not overwrite a Secret that somebody else made', async () => {
    const { api, apiKey, keyInSecret, reconcile } = setup();
    const data = { key: Buffer.from('theirs').toString('base64') };
    const metadata = { name: 'ci', namespace: 'bw-ws-acme' };
    api.seed(Secrets, { apiVersion: 'v1', kind: 'Secret', metadata, data });
    await reconcile();
    expect(summary(api)).toEqual(['patch apikeys/status']);
    expect(keyInSecret()).toBe('theirs');
    expect(findCondition(apiKey()?.status?.conditions, 'Ready')).toMatchObject({
      status: 'False',
      reason: 'SecretExists',
    });
    expect(apiKey()?.status?.hash).toBeUndefined();
  });

  it('issues the key by itself when that Secret is gone, of which nobody tells', async () => {
    const { api, apiKey, reconcile } = setup();
    const metadata = { name: 'ci', namespace: 'bw-ws-acme' };
    api.seed(Secrets, { apiVersion: 'v1', kind: 'Secret', metadata, data: {} });
    expect(await reconcile()).toEqual({ requeueAfterMs: 30_000 });
    api.vanish(Secrets, 'bw-ws-acme/ci');
    await reconcile();
    expect(isTrue(apiKey()?.status?.conditions, 'Ready')).toBe(true);
  });

  it('waits a moment when the right to write Secrets is not known everywhere yet', async () => {
    const { api, apiKey, reconcile } = setup();
    api.failNext({ verb: 'get', resource: 'secrets', error: apiError(403, 'Forbidden') });
    expect(await reconcile()).toEqual({ requeueAfterMs: 1000 });
    expect(findCondition(apiKey()?.status?.conditions, 'Ready')?.reason).toBe('SecretForbidden');
    await reconcile();
    expect(isTrue(apiKey()?.status?.conditions, 'Ready')).toBe(true);
  });

  it('is not made outside the namespace of a Workspace', async () => {
    const { api, apiKey, reconcile } = setup();
    api.vanish(Workspaces, 'acme');
    await reconcile();
    expect(summary(api)).toEqual(['patch apikeys/status']);
    expect(findCondition(apiKey()?.status?.conditions, 'Ready')?.reason).toBe('WorkspaceNotFound');
  });

  test.each([
    ['revoked', { revoked: true }, 'Revoked', ['Revoked']],
    ['expired', { expiresAt: '2025-12-31T00:00:00Z' }, 'Expired', ['Expired']],
    ['without a readable time', { expiresAt: 'soon' }, 'Expired', ['Expired']],
    ['revoked and expired', { revoked: true, expiresAt: '2025-12-31T00:00:00Z' }, 'Revoked', ['Expired', 'Revoked']],
    ['in force', { expiresAt: '2030-01-01T00:00:00Z' }, 'Ready', ['Ready']],
  ])('that is %s says so', async (_name, spec, reason, holding) => {
    const { apiKey, reconcile } = setup({ spec });
    await reconcile();
    const conditions = apiKey()?.status?.conditions ?? [];
    expect(findCondition(conditions, 'Ready')?.reason).toBe(reason);
    expect(conditions.filter(({ status }) => status === 'True').map(({ type }) => type)).toEqual(holding);
  });

  it('is looked at again when it expires', async () => {
    const { clock, apiKey, reconcile } = setup({ spec: { expiresAt: '2026-01-01T01:00:00Z' } });
    expect(await reconcile()).toEqual({ requeueAfterMs: 3_600_000 });
    await clock.advance(3_600_000);
    expect(await reconcile()).toEqual({});
    expect(isTrue(apiKey()?.status?.conditions, 'Expired')).toBe(true);
  });
});
