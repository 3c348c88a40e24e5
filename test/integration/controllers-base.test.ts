/** Workspace, Box, Agent, AgentTrigger and APIKey controllers on a real API server. */
import { createHash } from 'node:crypto';
import { findCondition, isTrue } from '../../src/api/conditions.js';
import { ANNOTATION_ADOPT, FINALIZER_ROLL_UP } from '../../src/api/labels.js';
import type { KubeObject, ResourceType } from '../../src/api/meta.js';
import { AgentRuns } from '../../src/api/v1alpha1/agent-run.js';
import { AgentTriggers } from '../../src/api/v1alpha1/agent-trigger.js';
import type { AgentTrigger } from '../../src/api/v1alpha1/agent-trigger.js';
import { Agents } from '../../src/api/v1alpha1/agent.js';
import type { Agent } from '../../src/api/v1alpha1/agent.js';
import { APIKeys } from '../../src/api/v1alpha1/api-key.js';
import { Boxes } from '../../src/api/v1alpha1/box.js';
import type { Box } from '../../src/api/v1alpha1/box.js';
import { Workspaces } from '../../src/api/v1alpha1/workspace.js';
import type { Condition } from '../../src/api/v1alpha1/common.js';
import {
  Jobs,
  LimitRanges,
  Namespaces,
  NetworkPolicies,
  ResourceQuotas,
  Secrets,
  ServiceAccounts,
} from '../../src/kube/core-types.js';
import type { ObjectRef } from '../../src/kube/types.js';
import { eventually, startApiServer } from '../builders/api-server.js';
import type { TestApiServer } from '../builders/api-server.js';
import { RELEASE_NAMESPACE, startBaseControllers, startStandIns } from '../builders/base-controllers.js';
import type { RunningControllers } from '../builders/base-controllers.js';
import { createObject, objectGone, objectWhen, readObject } from '../builders/objects.js';

describe('base controllers', () => {
  let server: TestApiServer;
  let controllers: RunningControllers;
  let standIns: { stop(): Promise<void> };

  beforeAll(async () => {
    server = await startApiServer({ own: true });
    await server.applyCrds();
    await createNamespace(RELEASE_NAMESPACE);
    controllers = await startBaseControllers(server);
    standIns = startStandIns(server);
  }, 1_200_000);

  afterAll(async () => {
    await controllers.stop();
    await standIns.stop();
    await server.stop();
  });

  async function createNamespace(name: string, annotations: Record<string, string> = {}): Promise<void> {
    await server.api.create(Namespaces, { apiVersion: 'v1', kind: 'Namespace', metadata: { name, annotations } });
  }

  const create = (type: ResourceType, metadata: KubeObject['metadata'], spec: object) =>
    createObject(server.api, type, metadata, spec);
  const read = <T extends KubeObject>(type: ResourceType<T>, ref: ObjectRef) => readObject(server.api, type, ref);
  const waitFor = <T extends KubeObject>(type: ResourceType<T>, ref: ObjectRef, check: (object: T) => boolean) =>
    objectWhen(server.api, type, ref, check, controllers.errors);
  const waitUntilGone = (type: ResourceType, ref: ObjectRef) => objectGone(server.api, type, ref);

  const isReady = (object: { status?: { conditions?: Condition[] | undefined } }) =>
    isTrue(object.status?.conditions, 'Ready');
  const readyReason = (object: { status?: { conditions?: Condition[] | undefined } }) =>
    findCondition(object.status?.conditions, 'Ready')?.reason;

  /** There is no network here that a probe could judge. */
  const egress = { requireEnforcement: false };

  async function createBox(workspace: string, box: string, spec: object = {}): Promise<Box> {
    if ((await read(Workspaces, { name: workspace })) === undefined) await create(Workspaces, { name: workspace }, {});
    await create(Boxes, { name: box }, { workspace, egress, ...spec });
    return await waitFor(Boxes, { name: box }, isReady);
  }

  it('makes a hardened namespace with everything that a Box has, and repairs what somebody changes', async () => {
    await createBox('w-hard', 'hard', { egress: { ...egress, mode: 'internet' }, quota: { memory: '1024Mi' } });
    const namespace = 'bw-hard';
    const { metadata } = await server.api.get(Namespaces, { name: namespace });
    expect(metadata.labels).toMatchObject({
      'boxwright.dev/box': 'hard',
      'boxwright.dev/workspace': 'w-hard',
      'app.kubernetes.io/managed-by': 'boxwright',
      'pod-security.kubernetes.io/enforce': 'restricted',
      'pod-security.kubernetes.io/warn': 'restricted',
      'pod-security.kubernetes.io/audit': 'restricted',
    });
    const box = await server.api.get(Boxes, { name: 'hard' });
    expect(metadata.ownerReferences).toMatchObject([{ kind: 'Box', uid: box.metadata.uid, controller: true }]);
    expect(box.metadata.finalizers).toEqual(['boxwright.dev/cleanup']);
    expect(box.status).toMatchObject({ namespace, agents: 0, running: 0, queued: 0 });
    const account = await server.api.get(ServiceAccounts, { namespace, name: 'boxwright-runner' });
    expect(account.automountServiceAccountToken).toBe(false);
    const policies = (await server.api.list(NetworkPolicies, { namespace })).items.map((one) => one.metadata.name);
    expect(policies.sort()).toEqual(['boxwright-default-deny', 'boxwright-gateway', 'boxwright-internet']);
    expect((await server.api.get(ResourceQuotas, { namespace, name: 'boxwright-quota' })).spec.hard).toEqual({
      pods: '50',
      'limits.cpu': '64',
      'limits.memory': '1Gi',
      persistentvolumeclaims: '200',
      'requests.storage': '1Ti',
    });
    expect((await server.api.get(LimitRanges, { namespace, name: 'boxwright-defaults' })).spec.limits).toHaveLength(1);

    await server.api.delete(NetworkPolicies, { namespace, name: 'boxwright-default-deny' });
    const hole = { spec: { podSelector: { matchLabels: { nobody: 'here' } } } };
    await server.api.patch(NetworkPolicies, { namespace, name: 'boxwright-gateway' }, hole, { type: 'merge' });
    const relaxed = { metadata: { labels: { 'pod-security.kubernetes.io/enforce': 'privileged' } } };
    await server.api.patch(Namespaces, { name: namespace }, relaxed, { type: 'merge' });
    await waitFor(
      NetworkPolicies,
      { namespace, name: 'boxwright-default-deny' },
      ({ spec }) => JSON.stringify(spec['podSelector']) === '{}',
    );
    await waitFor(
      NetworkPolicies,
      { namespace, name: 'boxwright-gateway' },
      ({ spec }) => !JSON.stringify(spec['podSelector']).includes('nobody'),
    );
    await waitFor(
      Namespaces,
      { name: namespace },
      (one) => one.metadata.labels?.['pod-security.kubernetes.io/enforce'] === 'restricted',
    );

    await server.api.patch(Boxes, { name: 'hard' }, { spec: { egress: { mode: 'none' } } }, { type: 'merge' });
    await waitUntilGone(NetworkPolicies, { namespace, name: 'boxwright-internet' });
  });

  it('makes a namespace for a Workspace in which nothing runs, and repairs one of an older version', async () => {
    await create(Workspaces, { name: 'w-still' }, {});
    await waitFor(Workspaces, { name: 'w-still' }, isReady);
    const namespace = 'bw-ws-w-still';
    const isGuarded = async () => {
      const { metadata } = await server.api.get(Namespaces, { name: namespace });
      expect(metadata.labels).toMatchObject({
        'boxwright.dev/workspace': 'w-still',
        'pod-security.kubernetes.io/enforce': 'restricted',
        'pod-security.kubernetes.io/warn': 'restricted',
        'pod-security.kubernetes.io/audit': 'restricted',
      });
      const policies = (await server.api.list(NetworkPolicies, { namespace })).items;
      expect(policies.map(({ metadata: { name }, spec }) => ({ name, spec }))).toEqual([
        { name: 'boxwright-default-deny', spec: { podSelector: {}, policyTypes: ['Ingress', 'Egress'] } },
      ]);
      const quotas = (await server.api.list(ResourceQuotas, { namespace })).items;
      expect(quotas.map(({ spec }) => spec.hard)).toEqual([{ pods: '0', persistentvolumeclaims: '0', services: '0' }]);
    };
    await isGuarded();

    const enforce = 'pod-security.kubernetes.io/enforce';
    await server.api.patch(
      Namespaces,
      { name: namespace },
      { metadata: { labels: { [enforce]: null } } },
      { type: 'merge' },
    );
    await server.api.delete(NetworkPolicies, { namespace, name: 'boxwright-default-deny' });
    const room = { spec: { hard: { pods: '9' } } };
    await server.api.patch(ResourceQuotas, { namespace, name: 'boxwright-quota' }, room, { type: 'merge' });
    await waitFor(Namespaces, { name: namespace }, (one) => one.metadata.labels?.[enforce] === 'restricted');
    await waitFor(NetworkPolicies, { namespace, name: 'boxwright-default-deny' }, () => true);
    await waitFor(ResourceQuotas, { namespace, name: 'boxwright-quota' }, ({ spec }) => spec.hard['pods'] === '0');
    await isGuarded();
  });

  it('takes no namespace that somebody else made, until an administrator lets it', async () => {
    await createNamespace('bw-taken');
    await create(Workspaces, { name: 'w-taken' }, {});
    await create(Boxes, { name: 'taken' }, { workspace: 'w-taken' });
    const refused = await waitFor(Boxes, { name: 'taken' }, (box) => readyReason(box) === 'NamespaceExists');
    expect(refused.status?.namespace).toBeUndefined();
    expect(findCondition(refused.status?.conditions, 'Ready')?.message).toContain(
      'kubectl annotate namespace bw-taken boxwright.dev/adopt=taken',
    );
    expect((await server.api.list(NetworkPolicies, { namespace: 'bw-taken' })).items).toEqual([]);
    expect((await server.api.get(Namespaces, { name: 'bw-taken' })).metadata.labels).not.toHaveProperty(
      'boxwright.dev/box',
    );
  });

  it('adopts an annotated empty namespace, and leaves it with its other contents when the Box goes', async () => {
    await createNamespace('bw-adopted', { [ANNOTATION_ADOPT]: 'adopted' });
    const namespace = 'bw-adopted';
    const foreign = { name: 'foreign', namespace };
    await server.api.create(ServiceAccounts, { apiVersion: 'v1', kind: 'ServiceAccount', metadata: foreign });
    await createBox('w-adopted', 'adopted');
    await create(Agents, { name: 'a', namespace }, { name: 'A' });
    await waitFor(Agents, { name: 'a', namespace }, isReady);
    expect((await server.api.get(Namespaces, { name: namespace })).metadata.ownerReferences).toBeUndefined();
    await waitFor(Jobs, { name: 'boxwright-network-probe', namespace }, () => true);
    await server.api.delete(Boxes, { name: 'adopted' });
    await waitUntilGone(Boxes, { name: 'adopted' });
    expect((await server.api.list(Jobs, { namespace })).items).toEqual([]);
    expect(await read(Agents, { name: 'a', namespace })).toBeUndefined();
    expect((await server.api.list(NetworkPolicies, { namespace })).items).toEqual([]);
    expect(await read(ServiceAccounts, { name: 'boxwright-runner', namespace })).toBeUndefined();
    expect(await read(ServiceAccounts, foreign)).toBeDefined();
    const left = await server.api.get(Namespaces, { name: namespace });
    expect(left.metadata.deletionTimestamp).toBeUndefined();
    expect(left.metadata.labels).not.toHaveProperty('boxwright.dev/box');
  });

  it('does not adopt a namespace in which something runs', async () => {
    await createNamespace('bw-busy', { [ANNOTATION_ADOPT]: 'busy' });
    const template = {
      metadata: { labels: { app: 'web' } },
      spec: { containers: [{ name: 'web', image: 'example.invalid/web' }] },
    };
    const deployment = { selector: { matchLabels: { app: 'web' } }, template };
    await server.api.create(Deployments, {
      apiVersion: 'apps/v1',
      kind: 'Deployment',
      metadata: { name: 'web', namespace: 'bw-busy' },
      spec: deployment,
    } as KubeObject);
    await create(Workspaces, { name: 'w-busy' }, {});
    await create(Boxes, { name: 'busy' }, { workspace: 'w-busy' });
    const box = await waitFor(Boxes, { name: 'busy' }, (one) => readyReason(one) === 'NamespaceExists');
    expect(findCondition(box.status?.conditions, 'Ready')?.message).toContain('Deployment web');
  });

  it('waits for a missing Workspace, and says what is wrong with an amount', async () => {
    await create(Boxes, { name: 'early' }, { workspace: 'w-early', egress });
    await waitFor(Boxes, { name: 'early' }, (box) => readyReason(box) === 'WorkspaceNotFound');
    expect(await read(Namespaces, { name: 'bw-early' })).toBeUndefined();
    await create(Workspaces, { name: 'w-early' }, {});
    await waitFor(Boxes, { name: 'early' }, isReady);
    const lots = { spec: { quota: { memory: 'lots' } } };
    await server.api.patch(Boxes, { name: 'early' }, lots, { type: 'merge' });
    const box = await waitFor(Boxes, { name: 'early' }, (one) => readyReason(one) === 'InvalidSpec');
    expect(findCondition(box.status?.conditions, 'Ready')?.message).toBe(
      'spec.quota.memory: not an amount such as 500m, 2 or 512Mi',
    );
  });

  it('gives slots and handles to the oldest agents, and a freed slot to the next', async () => {
    await create(Workspaces, { name: 'w-slots' }, { slots: 2 });
    await createBox('w-slots', 'slots-a');
    await createBox('w-slots', 'slots-b');
    const agents = [
      { namespace: 'bw-slots-a', name: 'one' },
      { namespace: 'bw-slots-b', name: 'two' },
      { namespace: 'bw-slots-a', name: 'zthree' },
    ] as const;
    const [one, two, three] = agents;
    await create(Agents, one, { name: 'One', handle: 'helper' });
    await waitFor(Agents, one, isReady);
    await create(Agents, two, { name: 'Two', handle: 'helper' });
    const second = await waitFor(Agents, two, (agent) => agent.status?.active === true);
    expect(second.status?.handle).toBeUndefined();
    expect(findCondition(second.status?.conditions, 'HandleConflict')).toMatchObject({
      status: 'True',
      message: 'the handle helper belongs to the older agent slots-a.one; set another spec.handle',
    });
    await create(Agents, three, { name: 'Three' });
    const third = await waitFor(Agents, three, (agent) => agent.status?.active === false);
    expect(third.status?.inactiveReason).toMatch(
      /^plan limit reached: 2 of 2 agent slots of workspace w-slots are in use; /,
    );
    await waitFor(Workspaces, { name: 'w-slots' }, ({ status }) => status?.agents === 3 && status.activeAgents === 2);

    await server.api.delete(Agents, one);
    await waitUntilGone(Agents, one);
    const freed = await waitFor(Agents, three, (agent) => agent.status?.active === true);
    expect(freed.status?.inactiveReason).toBeUndefined();
    const resolved = await waitFor(Agents, two, (agent) => agent.status?.handle === 'helper');
    expect(findCondition(resolved.status?.conditions, 'HandleConflict')).toBeUndefined();
  });

  it('makes a key once, and another one when the hash is removed', async () => {
    await create(Workspaces, { name: 'w-keys' }, {});
    const namespace = 'bw-ws-w-keys';
    const ref = { name: 'ci', namespace };
    await waitFor(Workspaces, { name: 'w-keys' }, isReady);
    await create(APIKeys, ref, { description: 'CI' });
    const first = await waitFor(APIKeys, ref, isReady);
    const firstKey = await keyIn(ref);
    expect(firstKey).toMatch(/^bw_[A-Za-z0-9_-]{43}$/);
    expect(first.status).toMatchObject({
      hash: createHash('sha256').update(firstKey).digest('hex'),
      prefix: firstKey.slice(0, 11),
      secretName: 'ci',
    });
    controllers.resync();
    await server.api.patch(APIKeys, ref, { spec: { revoked: true } }, { type: 'merge' });
    await waitFor(APIKeys, ref, (key) => isTrue(key.status?.conditions, 'Revoked') && readyReason(key) === 'Revoked');
    expect(await keyIn(ref)).toBe(firstKey);

    await server.api.patch(APIKeys, ref, { status: { hash: null } }, { type: 'merge', subresource: 'status' });
    const second = await waitFor(APIKeys, ref, (key) => key.status?.hash !== undefined);
    const secondKey = await keyIn(ref);
    expect(secondKey).not.toBe(firstKey);
    expect(second.status?.hash).toBe(createHash('sha256').update(secondKey).digest('hex'));
  });

  async function keyIn(ref: { name: string; namespace: string }): Promise<string> {
    const secret = await server.api.get(Secrets, ref);
    return Buffer.from(secret.data?.['key'] ?? '', 'base64').toString();
  }

  it('gives a trigger its token once, and says when its agent is missing', async () => {
    await createBox('w-trig', 'trig');
    const ref = { name: 'bot.deploy', namespace: 'bw-trig' };
    await create(AgentTriggers, ref, { agent: 'bot', name: 'Deploy', body: 'go' });
    const lonely = await waitFor(AgentTriggers, ref, (one) => readyReason(one) === 'AgentNotFound');
    expect(lonely.spec).toMatchObject({ keyId: 'k1', tokenId: expect.stringMatching(/^[0-9a-f]{32}$/) as string });
    expect(lonely.spec.body).toBe('go');
    await create(Agents, { name: 'bot', namespace: 'bw-trig' }, { name: 'Bot' });
    const ready = await waitFor(AgentTriggers, ref, isReady);
    expect(ready.spec.tokenId).toBe(lonely.spec.tokenId);
  });

  it('writes nothing when it looks at everything again', async () => {
    await createBox('w-calm', 'calm');
    await create(Agents, { name: 'a', namespace: 'bw-calm' }, { name: 'A' });
    await waitFor(Agents, { name: 'a', namespace: 'bw-calm' }, isReady);
    await create(AgentTriggers, { name: 'a.t', namespace: 'bw-calm' }, { agent: 'a', name: 'T', body: 'b' });
    await create(APIKeys, { name: 'k', namespace: 'bw-ws-w-calm' }, {});
    await waitFor(AgentTriggers, { name: 'a.t', namespace: 'bw-calm' }, isReady);
    await waitFor(APIKeys, { name: 'k', namespace: 'bw-ws-w-calm' }, isReady);
    await waitFor(Boxes, { name: 'calm' }, (box) => box.status?.agents === 1);
    await waitFor(Workspaces, { name: 'w-calm' }, ({ status }) => status?.agents === 1 && status.activeAgents === 1);
    const ofCalm = () => controllers.writes.filter((write) => write.includes('calm'));
    expect(ofCalm().filter((write) => write.startsWith('patch agents '))).toHaveLength(1);
    expect(ofCalm().filter((write) => write.startsWith('patchStatus agents '))).toHaveLength(1);
    expect(ofCalm().filter((write) => write.startsWith('patchStatus agenttriggers '))).toHaveLength(1);
    const before = ofCalm();
    controllers.resync();
    // A marker that only a reconcile after the resync can make: all queues are in order of arrival.
    await create(Boxes, { name: 'marker' }, { workspace: 'w-calm', egress });
    await waitFor(Boxes, { name: 'marker' }, isReady);
    await create(Agents, { name: 'marker', namespace: 'bw-marker' }, { name: 'M' });
    await waitFor(Agents, { name: 'marker', namespace: 'bw-marker' }, isReady);
    expect(ofCalm().filter((write) => !/ (w-calm|marker)$/.test(write))).toEqual(
      before.filter((write) => !/ (w-calm|marker)$/.test(write)),
    );
  });

  it.each(['Background', 'Foreground'] as const)(
    'a %s deletion of a Workspace takes its Boxes, agents, triggers, runs and keys with it',
    async (propagationPolicy) => {
      const suffix = propagationPolicy.toLowerCase();
      const [workspace, box] = [`w-del-${suffix}`, `del-${suffix}`];
      const namespace = `bw-${box}`;
      await createBox(workspace, box);
      await create(Agents, { name: 'a', namespace }, { name: 'A' });
      await waitFor(Agents, { name: 'a', namespace }, isReady);
      await create(AgentTriggers, { name: 'a.t', namespace }, { agent: 'a', name: 'T', body: 'b' });
      const run = { name: 'a-run', namespace, finalizers: [FINALIZER_ROLL_UP] };
      await create(AgentRuns, run, { agent: 'a', message: 'hello' });
      await create(APIKeys, { name: 'k', namespace: `bw-ws-${workspace}` }, {});
      await waitFor(APIKeys, { name: 'k', namespace: `bw-ws-${workspace}` }, isReady);

      await server.api.delete(Workspaces, { name: workspace }, { propagationPolicy });
      await waitUntilGone(Workspaces, { name: workspace });
      for (const [type, ref] of [
        [Boxes, { name: box }],
        [Namespaces, { name: namespace }],
        [Namespaces, { name: `bw-ws-${workspace}` }],
        [Agents, { name: 'a', namespace }],
        [AgentTriggers, { name: 'a.t', namespace }],
        [AgentRuns, { name: 'a-run', namespace }],
      ] as [ResourceType, { name: string; namespace?: string }][]) {
        expect([type.kind, await read(type, ref)]).toEqual([type.kind, undefined]);
      }
    },
  );

  it('an agent that is deleted waits for its runs, and touches nothing of other agents', async () => {
    await createBox('w-agent', 'agent-del');
    const namespace = 'bw-agent-del';
    for (const name of ['gone', 'stays']) {
      await create(Agents, { name, namespace }, { name });
      await create(AgentTriggers, { name: `${name}.t`, namespace }, { agent: name, name: 'T', body: 'b' });
      await create(AgentRuns, { name: `${name}-run`, namespace }, { agent: name, message: 'hello' });
    }
    await waitFor<Agent>(Agents, { name: 'gone', namespace }, isReady);
    await waitFor<AgentTrigger>(AgentTriggers, { name: 'gone.t', namespace }, isReady);
    await server.api.delete(Agents, { name: 'gone', namespace }, { propagationPolicy: 'Foreground' });
    await waitUntilGone(Agents, { name: 'gone', namespace });
    expect(await read(AgentRuns, { name: 'gone-run', namespace })).toBeUndefined();
    expect(await read(AgentTriggers, { name: 'gone.t', namespace })).toBeUndefined();
    for (const [type, name] of [
      [AgentRuns, 'stays-run'],
      [AgentTriggers, 'stays.t'],
      [Agents, 'stays'],
    ] as [ResourceType, string][]) {
      expect((await read(type, { name, namespace }))?.metadata.deletionTimestamp).toBeUndefined();
      expect(await read(type, { name, namespace })).toBeDefined();
    }
  });

  it('makes keyring, CA and gateway certificate once', async () => {
    const namespace = RELEASE_NAMESPACE;
    const names = ['boxwright-keyring', 'boxwright-ca', 'boxwright-gateway-tls'];
    await eventually(() => controllers.installation.caBundle() !== undefined, 'no CA bundle');
    const before = await Promise.all(names.map((name) => server.api.get(Secrets, { namespace, name })));
    expect(before[0]?.metadata.annotations).toMatchObject({ 'helm.sh/resource-policy': 'keep' });
    await controllers.installation.reconcile('installation', new AbortController().signal);
    const after = await Promise.all(names.map((name) => server.api.get(Secrets, { namespace, name })));
    expect(after.map((one) => one.metadata.resourceVersion)).toEqual(before.map((one) => one.metadata.resourceVersion));
    expect(Object.keys(before[2]?.data ?? {}).sort()).toEqual(['ca.crt', 'tls.crt', 'tls.key']);
    expect(controllers.installation.keyIds()?.current).toBe('k1');
  });

  it('logs no error in all of this: conflicts and objects that are gone are expected', () => {
    expect(controllers.errors).toEqual([]);
  });
});

const Deployments: ResourceType = {
  group: 'apps',
  version: 'v1',
  kind: 'Deployment',
  plural: 'deployments',
  namespaced: true,
};
