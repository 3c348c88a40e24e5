import { findCondition } from '../../api/conditions.js';
import type { KubeObject } from '../../api/meta.js';
import { AgentMemories } from '../../api/v1alpha1/agent-memory.js';
import { AgentRuns } from '../../api/v1alpha1/agent-run.js';
import { AgentSchedules } from '../../api/v1alpha1/agent-schedule.js';
import { AgentSkills } from '../../api/v1alpha1/agent-skill.js';
import { AgentTriggers } from '../../api/v1alpha1/agent-trigger.js';
import { Agents } from '../../api/v1alpha1/agent.js';
import type { Agent } from '../../api/v1alpha1/agent.js';
import { BoxSpec, Boxes } from '../../api/v1alpha1/box.js';
import type { Box } from '../../api/v1alpha1/box.js';
import { Workspaces } from '../../api/v1alpha1/workspace.js';
import type { ResourceType } from '../../api/meta.js';
import { PersistentVolumeClaims, StorageClasses } from '../../kube/core-types.js';
import { createLogger } from '../../observability/logger.js';
import { FakeClock } from '../../../test/builders/fake-clock.js';
import { MemoryArchive } from '../../../test/builders/memory-archive.js';
import { RecordingApi, apiError } from '../../../test/builders/recording-api.js';
import { createAgentController } from './controller.js';
import { controllerMemoryInformer } from '../../projections/agent-memory.js';
import { controllerScheduleInformer } from '../../projections/agent-schedule.js';
import { controllerSkillInformer } from '../../projections/agent-skill.js';
import { controllerTriggerInformer } from '../../projections/agent-trigger.js';
import { controllerAgentInformer } from '../../projections/agent.js';
import { controllerBoxInformer } from '../../projections/box.js';
import { storageClassInformer } from '../../projections/storage-class.js';
import { volumeClaimInformer } from '../../projections/volume-claim.js';
import { controllerWorkspaceInformer } from '../../projections/workspace.js';
import { controllerRunInformer } from '../../projections/agent-run.js';
import { writeStatus } from '../../../test/builders/write-status.js';

const apiVersion = 'boxwright.dev/v1alpha1';
const signal = new AbortController().signal;

function setup(slots = 1, archive?: MemoryArchive, boxSpec: object = {}) {
  const clock = new FakeClock();
  const api = new RecordingApi({ clock });
  const seed = (type: ResourceType, metadata: KubeObject['metadata'], spec: object, status?: object) =>
    api.seed(type, {
      apiVersion,
      kind: type.kind,
      metadata,
      spec,
      ...(status === undefined ? {} : { status }),
    } as KubeObject);
  seed(Workspaces, { name: 'acme' }, { slots });
  seed(Boxes, { name: 'dev' }, BoxSpec.parse({ workspace: 'acme', ...boxSpec }));
  const caches = {
    agents: api.informer(controllerAgentInformer),
    boxes: api.informer(controllerBoxInformer),
    workspaces: api.informer(controllerWorkspaceInformer),
    triggers: api.informer(controllerTriggerInformer),
    schedules: api.informer(controllerScheduleInformer),
    skills: api.informer(controllerSkillInformer),
    memories: api.informer(controllerMemoryInformer),
    volumeClaims: api.informer(volumeClaimInformer),
    storageClasses: api.informer(storageClassInformer),
    runs: api.informer(controllerRunInformer),
  };
  const log = createLogger('test', 'silent', { write: () => undefined });
  const controller = createAgentController({ api, clock, log, caches, archive });
  const enqueued: string[] = [];
  controller.watch((key) => enqueued.push(key));
  const seedAgent = (
    name: string,
    second: number,
    overrides: { spec?: object; status?: object; namespace?: string } = {},
  ) =>
    seed(
      Agents,
      { name, namespace: overrides.namespace ?? 'bw-dev', creationTimestamp: `2026-01-01T00:00:0${second}Z` },
      { name, soul: 'a long text', provider: 'boxwright', paused: false, tools: { browser: true }, ...overrides.spec },
      overrides.status,
    );
  /** Works on everything that was asked for until nothing is. */
  const drain = async () => {
    for (let key = enqueued.shift(); key !== undefined; key = enqueued.shift()) await controller.reconcile(key, signal);
  };
  const agent = (name: string): Agent | undefined => api.peek(Agents, `bw-dev/${name}`);
  return { api, controller, enqueued, seed, seedAgent, drain, agent };
}

const summary = (api: RecordingApi) => api.writes.map(({ verb, resource, key }) => `${verb} ${resource} ${key}`);

describe('an agent', () => {
  it('gets its finalizer and one status write, and then nothing', async () => {
    const { api, controller, seedAgent, drain, agent } = setup();
    seedAgent('a', 0);
    await drain();
    expect(summary(api)).toEqual(['patch agents bw-dev/a', 'patch agents/status bw-dev/a']);
    expect(agent('a')?.metadata.finalizers).toEqual(['boxwright.dev/cleanup']);
    expect(agent('a')?.status).toMatchObject({ active: true, handle: 'a', observedGeneration: 1 });
    expect(agent('a')?.spec.soul).toBe('a long text');
    api.clearRecords();
    await controller.reconcile('bw-dev/a', signal);
    expect([...api.writes, ...api.reads]).toEqual([]);
  });

  it('keeps the totals that others wrote into its status, also when it loses a field', async () => {
    const { seedAgent, drain, agent } = setup();
    const totals = { runs: 7, tokens: 100, costUsd: '0.000100', folding: ['u1'] };
    seedAgent('a', 0);
    seedAgent('b', 1, { status: { ...totals, active: false, inactiveReason: 'old words', handle: 'old' } });
    await drain();
    expect(agent('b')?.status).toMatchObject({ ...totals, active: false, handle: 'b' });
    expect(agent('b')?.status?.inactiveReason).toMatch(/^plan limit reached: 1 of 1 /);
  });

  it('gives its slot to the oldest that waits as soon as its deletion begins', async () => {
    const { api, seedAgent, drain, agent } = setup();
    seedAgent('a', 0);
    await drain();
    seedAgent('b', 1);
    seedAgent('c', 2);
    await drain();
    expect(agent('b')?.status?.active).toBe(false);
    await api.delete(Agents, { namespace: 'bw-dev', name: 'a' });
    await drain();
    expect(agent('a')).toBeUndefined();
    expect(agent('b')?.status).toMatchObject({ active: true });
    expect(agent('b')?.status?.inactiveReason).toBeUndefined();
    expect(agent('c')?.status?.active).toBe(false);
  });

  it('becomes active when the plan is raised', async () => {
    const { api, seedAgent, drain, agent } = setup(0);
    seedAgent('a', 0);
    await drain();
    expect(agent('a')?.status?.inactiveReason).toMatch(/^plan limit reached: 0 of 0 agent slots of workspace acme/);
    await api.patch(Workspaces, { name: 'acme' }, { spec: { slots: 1 } }, { type: 'merge' });
    await drain();
    expect(agent('a')?.status?.active).toBe(true);
  });

  it('shows HandleConflict while an older agent has its handle, and resolves after that', async () => {
    const { api, seedAgent, drain, agent } = setup(5);
    seedAgent('a', 0, { spec: { handle: 'bot' } });
    seedAgent('b', 1, { spec: { handle: 'bot' } });
    await drain();
    expect(agent('b')?.status?.handle).toBeUndefined();
    expect(findCondition(agent('b')?.status?.conditions, 'HandleConflict')?.status).toBe('True');
    expect(findCondition(agent('b')?.status?.conditions, 'Ready')?.reason).toBe('HandleConflict');
    await api.patch(Agents, { namespace: 'bw-dev', name: 'a' }, { spec: { handle: 'other' } }, { type: 'merge' });
    await drain();
    expect(agent('a')?.status?.handle).toBe('other');
    expect(agent('b')?.status?.handle).toBe('bot');
    expect(findCondition(agent('b')?.status?.conditions, 'HandleConflict')).toBeUndefined();
  });

  it('holds no slot in a namespace that is not ours', async () => {
    const { api, seedAgent, drain } = setup();
    seedAgent('a', 0, { namespace: 'default' });
    await drain();
    const status = api.peek(Agents, 'default/a')?.status;
    expect(status).toMatchObject({
      active: false,
      inactiveReason: 'the namespace is not the namespace of a Box; create the agent in bw-<box>',
    });
    expect(findCondition(status?.conditions, 'Ready')?.reason).toBe('BoxNotFound');
  });

  it('loses its slot when the namespace of its Box turns out to be somebody else’s', async () => {
    const { api, seedAgent, drain, agent } = setup();
    seedAgent('a', 0);
    await drain();
    const box = api.peek(Boxes, 'dev') as Box;
    const refused = { type: 'Ready', status: 'False', reason: 'NamespaceExists', message: '' } as const;
    const conditions = [{ ...refused, lastTransitionTime: '2026-01-01T00:00:00Z' }];
    await writeStatus(api, Boxes, { ...box, status: { conditions } });
    await drain();
    expect(agent('a')?.status?.active).toBe(false);
  });
});

describe('a browser that is missing', () => {
  const claim = (at: string, more: object = {}) => ({ claim: { podUid: 'p', podName: 'p', at, ...more } });
  const shown = (agent: Agent | undefined) => findCondition(agent?.status?.conditions, 'BrowserUnavailable');

  it('is shown by the agent after a claim that found none, and no more after one that did', async () => {
    const { api, seed, seedAgent, drain, agent } = setup();
    seedAgent('a', 0);
    await drain();
    expect(shown(agent('a'))).toBeUndefined();
    const run = (name: string, status: object) =>
      seed(AgentRuns, { name, namespace: 'bw-dev' }, { agent: 'a', message: 'x' }, status);
    run('a-1', claim('2026-01-01T00:00:01Z', { withoutBrowser: true }));
    await drain();
    expect(shown(agent('a'))).toMatchObject({
      status: 'True',
      reason: 'ImageWithoutBrowser',
      message: expect.stringContaining('Set spec.image of the Box to the browser variant of the image'),
    });
    api.clearRecords();
    run('a-2', claim('2026-01-01T00:00:02Z', { withoutBrowser: true }));
    await drain();
    expect(api.writes).toEqual([]);
    run('a-3', claim('2026-01-01T00:00:03Z'));
    await drain();
    expect(shown(agent('a'))).toBeUndefined();
  });
});

describe('an agent that is not meant to have a browser any more', () => {
  const shown = (agent: Agent | undefined) => findCondition(agent?.status?.conditions, 'BrowserUnavailable');

  it('loses the condition at once, without a run, and has it again when it is', async () => {
    const { api, seed, seedAgent, drain, agent } = setup();
    const browser = (on: boolean) =>
      api.patch(Agents, { namespace: 'bw-dev', name: 'a' }, { spec: { tools: { browser: on } } }, { type: 'merge' });
    seedAgent('a', 0);
    const claim = { podUid: 'p', podName: 'p', at: '2026-01-01T00:00:01Z', withoutBrowser: true };
    seed(AgentRuns, { name: 'a-1', namespace: 'bw-dev' }, { agent: 'a', message: 'x' }, { claim });
    await drain();
    expect(shown(agent('a'))?.status).toBe('True');
    api.clearRecords();
    await browser(false);
    await drain();
    expect(shown(agent('a'))).toBeUndefined();
    expect(summary(api)).toEqual(['patch agents bw-dev/a', 'patch agents/status bw-dev/a']);
    await browser(true);
    await drain();
    expect(shown(agent('a'))?.status).toBe('True');
  });

  it('loses the condition also when its runs are gone', async () => {
    const conditions = [
      {
        type: 'BrowserUnavailable',
        status: 'True',
        reason: 'ImageWithoutBrowser',
        message: '',
        lastTransitionTime: '2026-01-01T00:00:00Z',
      },
    ];
    const { seedAgent, drain, agent } = setup(2);
    seedAgent('a', 0, { spec: { tools: { browser: false } }, status: { conditions } });
    seedAgent('b', 1, { status: { conditions } });
    await drain();
    expect(shown(agent('a'))).toBeUndefined();
    expect(shown(agent('b'))?.status).toBe('True');
  });
});

describe('the volume of an agent', () => {
  const storageClass = (name: string, isDefault = true) => ({
    apiVersion: 'storage.k8s.io/v1',
    kind: 'StorageClass',
    metadata: { name, annotations: { 'storageclass.kubernetes.io/is-default-class': String(isDefault) } },
  });
  const persistence = (agent: Agent | undefined) => findCondition(agent?.status?.conditions, 'WorkspacePersistent');

  it('is claimed once, owned by the agent, in the default class of the cluster', async () => {
    const { api, controller, seedAgent, drain, agent } = setup();
    api.seed(StorageClasses, storageClass('standard'));
    seedAgent('a', 0);
    await drain();
    expect(api.peek(PersistentVolumeClaims, 'bw-dev/a-workspace')).toMatchObject({
      metadata: {
        labels: { 'app.kubernetes.io/managed-by': 'boxwright', 'boxwright.dev/agent': 'a', 'boxwright.dev/box': 'dev' },
        ownerReferences: [{ kind: 'Agent', name: 'a', uid: agent('a')?.metadata.uid, controller: true }],
      },
      spec: {
        accessModes: ['ReadWriteOnce'],
        storageClassName: 'standard',
        resources: { requests: { storage: '5Gi' } },
      },
    });
    expect(persistence(agent('a'))).toMatchObject({ status: 'True', reason: 'VolumePending' });
    api.clearRecords();
    await controller.reconcile('bw-dev/a', signal);
    expect([...api.writes, ...api.reads]).toEqual([]);
  });

  it('is made when a StorageClass comes; until then a condition says that files are lost', async () => {
    const { api, seedAgent, drain, agent } = setup();
    seedAgent('a', 0);
    await drain();
    expect(persistence(agent('a'))).toMatchObject({ status: 'False', reason: 'NoStorageClass' });
    api.seed(StorageClasses, storageClass('late'));
    await drain();
    expect(persistence(agent('a'))).toMatchObject({ status: 'True', reason: 'VolumePending' });
    await api.patch(
      PersistentVolumeClaims,
      { namespace: 'bw-dev', name: 'a-workspace' },
      { status: { phase: 'Bound' } },
      { type: 'merge', subresource: 'status' },
    );
    await drain();
    expect(persistence(agent('a'))).toMatchObject({ status: 'True', reason: 'VolumeBound' });
  });

  it('waits for a slot: an agent that does not run needs none', async () => {
    const { api, seedAgent, drain, agent } = setup(0);
    api.seed(StorageClasses, storageClass('standard'));
    seedAgent('a', 0);
    await drain();
    expect(api.all(PersistentVolumeClaims)).toEqual([]);
    expect(persistence(agent('a'))).toMatchObject({ status: 'False', reason: 'VolumeMissing' });
  });

  it('that the quota refuses is named, and tried again', async () => {
    const { api, controller, seedAgent, drain, agent } = setup();
    api.seed(StorageClasses, storageClass('standard'));
    seedAgent('a', 0);
    const error = apiError(403, 'Forbidden', 'exceeded quota: boxwright-quota, requested: persistentvolumeclaims=1');
    api.failNext({ verb: 'create', resource: 'persistentvolumeclaims', error, times: 2 });
    expect(await controller.reconcile('bw-dev/a', signal)).toEqual({ requeueAfterMs: 30_000 });
    expect(persistence(agent('a'))).toMatchObject({
      status: 'False',
      reason: 'VolumeRefused',
      message: expect.stringMatching(/exceeded quota: boxwright-quota.*raise spec.quota.volumes/s),
    });
    await controller.reconcile('bw-dev/a', signal);
    await controller.reconcile('bw-dev/a', signal);
    await drain();
    expect(persistence(agent('a'))).toMatchObject({ status: 'True' });
  });

  it('is asked for again in a moment while Kubernetes has not counted the quota', async () => {
    const { api, controller, seedAgent, agent } = setup();
    api.seed(StorageClasses, storageClass('standard'));
    seedAgent('a', 0);
    const error = apiError(403, 'Forbidden', 'status unknown for quota: boxwright-quota, resources: requests.storage');
    api.failNext({ verb: 'create', resource: 'persistentvolumeclaims', error });
    expect(await controller.reconcile('bw-dev/a', signal)).toEqual({ requeueAfterMs: 1_000 });
    expect(persistence(agent('a'))).toMatchObject({ status: 'False', reason: 'VolumeMissing' });
  });

  it('is never one that somebody else made', async () => {
    const { api, seed, controller, seedAgent, drain, agent } = setup();
    api.seed(StorageClasses, storageClass('standard'));
    seed(PersistentVolumeClaims, { name: 'a-workspace', namespace: 'bw-dev' }, {});
    seedAgent('a', 0);
    await drain();
    expect(persistence(agent('a'))).toMatchObject({ status: 'False', reason: 'VolumeForeign' });
    await api.delete(Agents, { namespace: 'bw-dev', name: 'a' });
    await controller.reconcile('bw-dev/a', signal);
    expect(agent('a')).toBeUndefined();
    expect(api.peek(PersistentVolumeClaims, 'bw-dev/a-workspace')).toBeDefined();
  });

  it('goes with the agent, also when a pod still holds it, and also before a cache shows it', async () => {
    const { api, controller, seedAgent, drain, agent } = setup();
    api.seed(StorageClasses, storageClass('standard'));
    seedAgent('a', 0);
    await drain();
    const claim = api.peek(PersistentVolumeClaims, 'bw-dev/a-workspace');
    api.vanish(PersistentVolumeClaims, 'bw-dev/a-workspace');
    await drain();
    api.vanish(PersistentVolumeClaims, 'bw-dev/a-workspace');
    await api.delete(Agents, { namespace: 'bw-dev', name: 'a' });
    if (claim !== undefined) {
      const labels = {};
      const finalizers = ['kubernetes.io/pvc-protection'];
      api.seed(PersistentVolumeClaims, { ...claim, metadata: { ...claim.metadata, labels, finalizers } });
    }
    await controller.reconcile('bw-dev/a', signal);
    expect(agent('a')).toBeUndefined();
    const left = api.peek(PersistentVolumeClaims, 'bw-dev/a-workspace');
    expect(left?.metadata.deletionTimestamp).toBeDefined();
  });

  it('stays when the Box changes to ephemeral', async () => {
    const { api, seedAgent, drain, agent } = setup();
    api.seed(StorageClasses, storageClass('standard'));
    seedAgent('a', 0);
    await drain();
    const body = { spec: { workspaceVolume: { mode: 'ephemeral' } } };
    await api.patch(Boxes, { name: 'dev' }, body, { type: 'merge' });
    await drain();
    expect(persistence(agent('a'))).toMatchObject({ status: 'False', reason: 'Ephemeral' });
    expect(api.peek(PersistentVolumeClaims, 'bw-dev/a-workspace')).toBeDefined();
  });
});

describe('the deletion of an agent', () => {
  it('purges its archive after its last run and before it is gone', async () => {
    const archive = new MemoryArchive();
    const { api, seed, seedAgent, drain, agent } = setup(1, archive);
    seedAgent('a', 0);
    seed(AgentRuns, { name: 'a-1', namespace: 'bw-dev', finalizers: ['boxwright.dev/fold'] }, { agent: 'a' });
    await drain();
    await api.delete(Agents, { namespace: 'bw-dev', name: 'a' });
    await drain();
    expect(archive.calls).toEqual([]);
    api.vanish(AgentRuns, 'bw-dev/a-1');
    await drain();
    expect(archive.calls).toEqual(['purge']);
    expect(agent('a')).toBeUndefined();
  });

  it('waits while the archive is away, and says so', async () => {
    const archive = new MemoryArchive();
    const { api, controller, seedAgent, drain, agent } = setup(1, archive);
    seedAgent('a', 0);
    await drain();
    archive.available = false;
    await api.delete(Agents, { namespace: 'bw-dev', name: 'a' });
    expect(await controller.reconcile('bw-dev/a', signal)).toEqual({ requeueAfterMs: 10_000 });
    expect(findCondition(agent('a')?.status?.conditions, 'Ready')).toMatchObject({
      status: 'False',
      reason: 'ArchiveUnavailable',
      message: expect.stringContaining('the PostgreSQL archive cannot be used at the moment. Check PostgreSQL'),
    });
    archive.available = true;
    await controller.reconcile('bw-dev/a', signal);
    expect(agent('a')).toBeUndefined();
  });

  it('deletes all that belongs to it, waits until it is gone, and touches nothing of others', async () => {
    const { api, controller, seed, seedAgent, drain, agent } = setup(5);
    for (const name of ['a', 'b']) {
      seedAgent(name, 0);
      seed(AgentTriggers, { name: `${name}.t`, namespace: 'bw-dev' }, { agent: name, name: 'T' });
      seed(AgentSchedules, { name: `${name}.s`, namespace: 'bw-dev' }, { agent: name, name: 'S', cron: '0 9 * * *' });
      seed(AgentSkills, { name: `${name}.k`, namespace: 'bw-dev' }, { agent: name, name: 'K', files: [] });
      seed(AgentMemories, { name: `${name}-m`, namespace: 'bw-dev' }, { agent: name, text: 'note' });
      const finalizers = ['boxwright.dev/fold'];
      seed(AgentRuns, { name: `${name}-1`, namespace: 'bw-dev', finalizers }, { agent: name });
    }
    await drain();
    await api.delete(Agents, { namespace: 'bw-dev', name: 'a' });
    api.clearRecords();
    expect(await controller.reconcile('bw-dev/a', signal)).toEqual({ requeueAfterMs: 2000 });
    expect(summary(api)).toEqual([
      'delete agenttriggers bw-dev/a.t',
      'delete agentschedules bw-dev/a.s',
      'delete agentruns bw-dev/a-1',
      'delete agentskills bw-dev/a.k',
      'delete agentmemories bw-dev/a-m',
      'patch agents/status bw-dev/a',
    ]);
    expect(findCondition(agent('a')?.status?.conditions, 'Ready')?.reason).toBe('Deleting');
    api.clearRecords();
    await drain();
    expect(api.writes).toEqual([]);

    api.vanish(AgentRuns, 'bw-dev/a-1');
    await drain();
    expect(summary(api)).toEqual(['patch agents bw-dev/a']);
    expect(agent('a')).toBeUndefined();
    expect(api.peek(AgentTriggers, 'bw-dev/b.t')).toBeDefined();
    expect(api.peek(AgentSchedules, 'bw-dev/b.s')).toBeDefined();
    expect(api.peek(AgentSkills, 'bw-dev/b.k')).toBeDefined();
    expect(api.peek(AgentMemories, 'bw-dev/b-m')).toBeDefined();
    expect(api.peek(AgentRuns, 'bw-dev/b-1')?.metadata.deletionTimestamp).toBeUndefined();
  });

  it('succeeds when what it deletes is gone already', async () => {
    const { api, controller, seed, seedAgent, drain, agent } = setup();
    seedAgent('a', 0);
    seed(AgentTriggers, { name: 'a.t', namespace: 'bw-dev' }, { agent: 'a', name: 'T' });
    await drain();
    await api.delete(Agents, { namespace: 'bw-dev', name: 'a' });
    api.failNext({ verb: 'delete', resource: 'agenttriggers', error: apiError(404, 'NotFound') });
    await controller.reconcile('bw-dev/a', signal);
    api.vanish(AgentTriggers, 'bw-dev/a.t');
    await drain();
    expect(agent('a')).toBeUndefined();
  });
});
