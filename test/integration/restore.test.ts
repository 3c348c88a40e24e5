/**
 * An installation on a fresh API server, from a backup as Velero makes it: without status, UIDs, versions and owners, applied
 * while the controller works. docs/backup.md promises what is checked here.
 */
import { FINALIZER_ROLL_UP } from '../../src/api/labels.js';
import { hashOfApiKey } from '../../src/api/api-key-validity.js';
import { isTrue } from '../../src/api/conditions.js';
import { KEYRING_ENTRY, KEYRING_SECRET, parseKeyring } from '../../src/api/keyring.js';
import type { KubeObject, ResourceType } from '../../src/api/meta.js';
import { AgentRuns, type AgentRun } from '../../src/api/v1alpha1/agent-run.js';
import { AgentTriggers } from '../../src/api/v1alpha1/agent-trigger.js';
import { Agents } from '../../src/api/v1alpha1/agent.js';
import { APIKeys } from '../../src/api/v1alpha1/api-key.js';
import { Boxes } from '../../src/api/v1alpha1/box.js';
import { Workspaces } from '../../src/api/v1alpha1/workspace.js';
import { Jobs, Namespaces, Secrets } from '../../src/kube/core-types.js';
import { ownedBy } from '../../src/kube/owner-references.js';
import { createLogger } from '../../src/observability/logger.js';
import { triggerToken } from '../../src/services/triggers/trigger-token.js';
import { eventually, startApiServer } from '../builders/api-server.js';
import type { TestApiServer } from '../builders/api-server.js';
import { createRelease, startReplica, type Replica } from '../builders/controller-replica.js';
import { createObject, objectWhen, readObject } from '../builders/objects.js';
import { writeStatus } from '../builders/write-status.js';

const RELEASE = 'boxwright-restore-test';
const BOX = 'dev';
const NAMESPACE = `bw-${BOX}`;
const KEYS = 'bw-ws-acme';
const BACKED_UP: readonly ResourceType[] = [
  Namespaces,
  Secrets,
  Workspaces,
  Boxes,
  APIKeys,
  Agents,
  AgentTriggers,
  AgentRuns,
];

interface Installation {
  server: TestApiServer;
  replica: Replica;
}

const errors: string[] = [];
const running: Installation[] = [];

afterAll(async () => {
  for (const { server, replica } of running.splice(0)) {
    await replica.stop();
    await server.stop();
  }
});

/** A controller on an API server of its own. `before` is what is there when it starts. */
async function install(
  before: (server: TestApiServer) => Promise<void> = () => Promise.resolve(),
): Promise<TestApiServer> {
  const server = await startApiServer({ own: true });
  await server.applyCrds();
  await createRelease(server, RELEASE);
  await before(server);
  const log = createLogger('test', 'error', { write: (line) => errors.push(line) });
  const onLost = (error: Error) => void errors.push(String(error));
  const replica = await startReplica({ server, releaseNamespace: RELEASE, podName: 'controller-0', log, onLost });
  running.push({ server, replica });
  return server;
}

const isReady = ({ status }: { status?: unknown }) =>
  isTrue((status as { conditions?: Parameters<typeof isTrue>[0] } | undefined)?.conditions, 'Ready');
const runWhen = (server: TestApiServer, name: string, done: (run: AgentRun) => boolean) =>
  objectWhen(server.api, AgentRuns, { name, namespace: NAMESPACE }, done);

/** A Workspace with a key, and a Box with an agent, its trigger, and one run of each sort. */
async function fill({ api }: TestApiServer, server: TestApiServer): Promise<void> {
  await createObject(api, Workspaces, { name: 'acme' }, { slots: 5 });
  const egress = { requireEnforcement: false };
  await createObject(api, Boxes, { name: BOX }, { workspace: 'acme', engine: 'scripted', maxRunning: 1, egress });
  await objectWhen(api, Boxes, { name: BOX }, isReady);
  await createObject(api, APIKeys, { name: 'ci', namespace: KEYS }, {});
  await objectWhen(api, APIKeys, { name: 'ci', namespace: KEYS }, isReady);
  await createObject(api, Agents, { name: 'ada', namespace: NAMESPACE }, { name: 'Ada' });
  await objectWhen(api, Agents, { name: 'ada', namespace: NAMESPACE }, ({ status }) => status?.active === true);
  await createObject(
    api,
    AgentTriggers,
    { name: 'ada.hook', namespace: NAMESPACE },
    { agent: 'ada', name: 'Hook', body: 'x' },
  );
  await objectWhen(api, AgentTriggers, { name: 'ada.hook', namespace: NAMESPACE }, isReady);
  // One ends, one is at work, one waits for its place.
  for (const name of ['finished', 'working', 'waiting']) {
    const run = await createObject(api, AgentRuns, { name, namespace: NAMESPACE }, { agent: 'ada', message: name });
    if (name === 'waiting') continue;
    await eventually(
      async () => (await readObject(api, Jobs, { name, namespace: NAMESPACE })) !== undefined,
      `Job ${name}`,
    );
    if (name === 'working') continue;
    const now = new Date().toISOString();
    await eventually(async () => {
      const live = await readObject(api, AgentRuns, { name, namespace: NAMESPACE });
      if (live === undefined) return false;
      await writeStatus(api, AgentRuns, {
        ...live,
        status: { ...live.status, phase: 'done', reason: 'Completed', finishedAt: now },
      });
      return true;
    }, `${run.metadata.name} ends`);
  }
  await runWhen(server, 'waiting', ({ status }) => status?.reason !== undefined || status?.phase !== undefined);
}

/** Everything of the installation, as Velero stores it; what the chart makes is not in it. */
async function backUp({ api }: TestApiServer): Promise<[ResourceType, KubeObject][]> {
  const objects: [ResourceType, KubeObject][] = [];
  for (const type of BACKED_UP) {
    for (const { metadata, ...object } of (await api.list(type)).items) {
      const place = metadata.namespace ?? metadata.name;
      if (['Namespace', 'Secret'].includes(type.kind) && !place.startsWith('bw-') && place !== RELEASE) continue;
      if (type === Namespaces && place === RELEASE) continue;
      const { status: _status, ...rest } = object as Record<string, unknown>;
      const { name, namespace, labels, annotations } = metadata;
      const kept = {
        name,
        ...(namespace === undefined ? {} : { namespace }),
        ...(labels === undefined ? {} : { labels }),
        ...(annotations === undefined ? {} : { annotations }),
      };
      const spec = type === Namespaces ? {} : rest;
      objects.push([type, { ...spec, apiVersion: apiVersion(type), kind: type.kind, metadata: kept }]);
    }
  }
  return objects;
}

const apiVersion = ({ group, version }: ResourceType) => (group === '' ? version : `${group}/${version}`);

async function urlToken({ api }: TestApiServer): Promise<string> {
  const secret = await readObject(api, Secrets, { name: KEYRING_SECRET, namespace: RELEASE });
  const keyring = parseKeyring(Buffer.from(secret?.data?.[KEYRING_ENTRY] ?? '', 'base64').toString());
  const trigger = await readObject(api, AgentTriggers, { name: 'ada.hook', namespace: NAMESPACE });
  const { tokenId = '', keyId = '' } = trigger?.spec ?? {};
  const key = keyring.keys.get(keyId);
  if (key === undefined) throw new Error('the keyring has no key of the trigger');
  return triggerToken(key, { agentId: `${BOX}.ada`, slug: 'hook', tokenId });
}

async function apiKey({ api }: TestApiServer): Promise<string> {
  const secret = await readObject(api, Secrets, { name: 'ci', namespace: KEYS });
  return Buffer.from(secret?.data?.['key'] ?? '', 'base64').toString();
}

test('a restored installation knows its namespaces, keys and URLs, and repeats no run', async () => {
  const old = await install();
  await fill(old, old);
  const [url, key, backup] = [await urlToken(old), await apiKey(old), await backUp(old)];
  expect(key).toMatch(/^bw_/);

  const fresh = await install(async ({ api }) => {
    // The Secrets of the installation come before the chart is installed; the rest finds a controller at work.
    for (const [type, object] of backup) if (object.metadata.namespace === RELEASE) await api.create(type, object);
  });
  for (const [type, object] of backup) if (object.metadata.namespace !== RELEASE) await fresh.api.create(type, object);

  const box = await objectWhen(fresh.api, Boxes, { name: BOX }, isReady);
  const workspace = await objectWhen(fresh.api, Workspaces, { name: 'acme' }, isReady);
  const ownerOf = async (name: string) => readObject(fresh.api, Namespaces, { name });
  expect(ownedBy((await ownerOf(NAMESPACE)) ?? { metadata: { name: '' } }, box.metadata.uid ?? '')).toBe(true);
  expect(ownedBy((await ownerOf(KEYS)) ?? { metadata: { name: '' } }, workspace.metadata.uid ?? '')).toBe(true);

  const restored = await objectWhen(fresh.api, APIKeys, { name: 'ci', namespace: KEYS }, isReady);
  expect(restored.status?.hash).toBe(hashOfApiKey(key));
  expect(await apiKey(fresh)).toBe(key);
  await objectWhen(fresh.api, AgentTriggers, { name: 'ada.hook', namespace: NAMESPACE }, isReady);
  expect(await urlToken(fresh)).toBe(url);

  for (const name of ['finished', 'working']) {
    const run = await runWhen(fresh, name, ({ status }) => status?.phase === 'error');
    expect(run.status?.reason).toBe('Restored');
  }
  // It had not begun: it starts, once.
  await eventually(
    async () => (await readObject(fresh.api, Jobs, { name: 'waiting', namespace: NAMESPACE })) !== undefined,
    'the run that waited starts',
  );
  const jobs = (await fresh.api.list(Jobs, { namespace: NAMESPACE })).items.map(({ metadata }) => metadata.name);
  expect(jobs.filter((name) => name !== 'boxwright-network-probe')).toEqual(['waiting']);
  // Counts begin anew: what was restored is no run of this installation.
  const copy = await readObject(fresh.api, AgentRuns, { name: 'finished', namespace: NAMESPACE });
  expect(copy?.metadata.finalizers ?? []).not.toContain(FINALIZER_ROLL_UP);
  expect(errors).toEqual([]);
}, 600_000);
