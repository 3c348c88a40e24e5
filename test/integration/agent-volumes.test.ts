/**
 * The volumes of agents with the controller process on a real API server. There is no quota controller, no volume binder and
 * nobody who releases a claim that is in use: the test counts the quota and plays the rest.
 */
import { findCondition, isTrue } from '../../src/api/conditions.js';
import type { KubeObject, ResourceType } from '../../src/api/meta.js';
import { AgentRuns } from '../../src/api/v1alpha1/agent-run.js';
import { Agents } from '../../src/api/v1alpha1/agent.js';
import type { Agent } from '../../src/api/v1alpha1/agent.js';
import { Boxes } from '../../src/api/v1alpha1/box.js';
import { Workspaces } from '../../src/api/v1alpha1/workspace.js';
import { Jobs, PersistentVolumeClaims, ResourceQuotas, StorageClasses } from '../../src/kube/core-types.js';
import type { ObjectRef } from '../../src/kube/types.js';
import type { TestApiServer } from '../builders/api-server.js';
import { createObject, objectGone, objectWhen, readObject } from '../builders/objects.js';
import { startSingleController } from '../builders/single-controller.js';
import type { SingleController } from '../builders/single-controller.js';

const RELEASE = 'boxwright-volumes-test';
const NAMESPACE = 'bw-keeps';

describe('volumes of agents', () => {
  let server: TestApiServer;
  let controller: SingleController;
  const errors: string[] = [];

  beforeAll(async () => {
    controller = await startSingleController({ releaseNamespace: RELEASE, errors });
    server = controller.server;
    await create(Workspaces, { name: 'keeps' }, { slots: 10 });
    const egress = { requireEnforcement: false };
    const workspaceVolume = { mode: 'persistent', size: '1Gi' };
    await create(Boxes, { name: 'keeps' }, { workspace: 'keeps', engine: 'scripted', egress, workspaceVolume });
    await waitFor(Boxes, { name: 'keeps' }, (box) => isTrue(box.status?.conditions, 'Ready'));
    await countQuota({ persistentvolumeclaims: '0', 'requests.storage': '0' });
  }, 1_200_000);

  afterAll(() => controller.stop());

  const create = (type: ResourceType, metadata: KubeObject['metadata'], spec?: object) =>
    createObject(server.api, type, metadata, spec);
  const read = <T extends KubeObject>(type: ResourceType<T>, ref: ObjectRef) => readObject(server.api, type, ref);
  const waitFor = <T extends KubeObject>(type: ResourceType<T>, ref: ObjectRef, check: (object: T) => boolean) =>
    objectWhen(server.api, type, ref, check, errors);

  /** As the quota controller. */
  async function countQuota(used: Record<string, string>): Promise<void> {
    const ref = { namespace: NAMESPACE, name: 'boxwright-quota' };
    const { spec } = await waitFor(ResourceQuotas, ref, () => true);
    const zero = Object.fromEntries(Object.keys(spec.hard).map((name) => [name, '0']));
    const body = { status: { hard: spec.hard, used: { ...zero, ...used } } };
    await server.api.patch(ResourceQuotas, ref, body, { type: 'merge', subresource: 'status' });
  }

  async function createStorageClass(name: string, annotations: Record<string, string> = {}): Promise<void> {
    await server.api.create(StorageClasses, {
      apiVersion: 'storage.k8s.io/v1',
      kind: 'StorageClass',
      metadata: { name, annotations },
      provisioner: 'kubernetes.io/no-provisioner',
      volumeBindingMode: 'WaitForFirstConsumer',
    } as KubeObject);
  }

  const persistence = ({ status }: Agent) => findCondition(status?.conditions, 'WorkspacePersistent');
  const shows = (name: string, reason: string) =>
    waitFor(Agents, { namespace: NAMESPACE, name }, (agent) => persistence(agent)?.reason === reason);
  const createRun = (name: string, agent: string) =>
    create(AgentRuns, { name, namespace: NAMESPACE }, { agent, message: 'hello' });
  const jobVolumes = async (name: string) => {
    const job = await waitFor(Jobs, { namespace: NAMESPACE, name }, () => true);
    return job.spec.template.spec['volumes'];
  };

  it('are waited for, made once a StorageClass is there, owned, mounted, and gone with the agent', async () => {
    await create(Agents, { name: 'ada', namespace: NAMESPACE }, { name: 'Ada' });
    await shows('ada', 'NoStorageClass');
    await createRun('ada-1', 'ada');
    const run = { namespace: NAMESPACE, name: 'ada-1' };
    await waitFor(AgentRuns, run, ({ status }) => status?.reason === 'WorkspaceNotReady');
    expect(await read(Jobs, run)).toBeUndefined();

    await createStorageClass('local', { 'storageclass.kubernetes.io/is-default-class': 'true' });

    const agent = await shows('ada', 'VolumePending');
    expect(await jobVolumes('ada-1')).toContainEqual({
      name: 'workspace',
      persistentVolumeClaim: { claimName: 'ada-workspace' },
    });
    const ref = { namespace: NAMESPACE, name: 'ada-workspace' };
    const claim = await server.api.get(PersistentVolumeClaims, ref);
    expect(claim.metadata.ownerReferences).toMatchObject([
      { kind: 'Agent', name: 'ada', uid: agent.metadata.uid, controller: true },
    ]);
    expect(claim.spec).toMatchObject({
      accessModes: ['ReadWriteOnce'],
      storageClassName: 'local',
      resources: { requests: { storage: '1Gi' } },
    });
    // The API server itself guards a claim in use; nobody lifts that here, as with a pod that does not end.
    expect(claim.metadata.finalizers).toEqual(['kubernetes.io/pvc-protection']);

    await server.api.delete(Agents, { namespace: NAMESPACE, name: 'ada' });

    await objectGone(server.api, Agents, { namespace: NAMESPACE, name: 'ada' });
    expect((await read(PersistentVolumeClaims, ref))?.metadata.deletionTimestamp).toBeDefined();
  });

  it('of a deleted agent are not handed to the next one of its name', async () => {
    await create(Agents, { name: 'ada', namespace: NAMESPACE }, { name: 'Ada again' });
    await shows('ada', 'VolumeForeign');
    await createRun('ada-2', 'ada');
    const run = { namespace: NAMESPACE, name: 'ada-2' };
    await waitFor(AgentRuns, run, ({ status }) => status?.reason === 'WorkspaceNotReady');

    const ref = { namespace: NAMESPACE, name: 'ada-workspace' };
    await server.api.patch(PersistentVolumeClaims, ref, { metadata: { finalizers: null } }, { type: 'merge' });

    const agent = await shows('ada', 'VolumePending');
    await jobVolumes('ada-2');
    const claim = await server.api.get(PersistentVolumeClaims, ref);
    expect(claim.metadata.ownerReferences?.[0]?.uid).toBe(agent.metadata.uid);
  });

  it('are bounded by the quota of the Box, and the agent says so', async () => {
    await countQuota({ persistentvolumeclaims: '200' });
    await create(Agents, { name: 'one-more', namespace: NAMESPACE }, { name: 'One more' });
    const agent = await shows('one-more', 'VolumeRefused');
    expect(persistence(agent)?.message).toMatch(/exceeded quota: boxwright-quota.*spec\.quota\.volumes/);
  });

  it('are kept when the StorageClass goes', async () => {
    await server.api.delete(StorageClasses, { name: 'local' });
    await createRun('ada-3', 'ada');
    expect(await jobVolumes('ada-3')).toContainEqual({
      name: 'workspace',
      persistentVolumeClaim: { claimName: 'ada-workspace' },
    });
  });
});
